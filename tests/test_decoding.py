import numpy as np
import pytest

from spacy_robust_ner.candidates import CandidateTable
from spacy_robust_ner.decoding import (
    ScoredSpans,
    by_document,
    find_entities,
    join,
    resolve_overlap,
)


def scored(spans):
    starts, ends, labels, scores = zip(*spans, strict=True)
    return ScoredSpans(np.array(starts), np.array(ends), np.array(labels), np.array(scores))


def as_tuples(spans):
    return list(
        zip(
            spans.starts.tolist(),
            spans.ends.tolist(),
            spans.labels.tolist(),
            spans.scores.tolist(),
            strict=True,
        )
    )


def random_spans(seed, n_tokens=9):
    rng = np.random.default_rng(seed)
    every = CandidateTable([n_tokens], max_width=None).spans()
    chosen = np.flatnonzero(rng.random(len(every)) < 0.5)
    # Few different scores, so that ties are common.
    scores = rng.integers(5, 8, size=len(chosen)) / 10
    return ScoredSpans(every.starts[chosen], every.ends[chosen], chosen % 3 + 1, scores)


def greedy(spans, conflict):
    order = sorted(as_tuples(spans), key=lambda s: (-s[3], -(s[1] - s[0]), s[0]))
    kept = []
    for span in order:
        if not any(conflict(span, other) for other in kept):
            kept.append(span)
    return sorted(kept)


def overlaps(a, b):
    return a[0] < b[1] and b[0] < a[1]


def crosses(a, b):
    return a[0] < b[0] < a[1] < b[1] or b[0] < a[0] < b[1] < a[1]


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize(
    ("overlap", "conflict"),
    [("flat", overlaps), ("nested", crosses), ("all", lambda a, b: False)],
)
def test_resolution_against_brute_force(seed, overlap, conflict):
    spans = random_spans(seed)
    resolved = resolve_overlap(spans, overlap=overlap, n_tokens=9)
    assert as_tuples(resolved) == greedy(spans, conflict)


def test_ties_are_broken_by_length_then_start():
    tied = scored([(2, 3, 1, 0.9), (1, 3, 1, 0.9), (0, 2, 1, 0.9)])
    resolved = resolve_overlap(tied, overlap="flat", n_tokens=3)
    assert as_tuples(resolved) == [(0, 2, 1, 0.9), (2, 3, 1, 0.9)]


def test_find_entities():
    probs = np.array(
        [[0.6, 0.3, 0.1], [0.2, 0.3, 0.5], [0.4, 0.2, 0.4], [0.45, 0.5, 0.05]], dtype=np.float32
    )
    starts, ends = np.arange(4), np.arange(1, 5)
    found = find_entities(starts, ends, probs, o_index=0)
    assert found.starts.tolist() == [1, 3]
    assert found.labels.tolist() == [2, 1]
    assert found.scores.tolist() == probs[[1, 3], [2, 1]].tolist()
    found = find_entities(starts, ends, probs, o_index=0, threshold=0.5)
    assert found.starts.tolist() == [1, 3]
    assert len(find_entities(starts, ends, probs, o_index=0, threshold=0.51)) == 0
    found = find_entities(starts, ends, probs, o_index=0, threshold=0.4, must_beat_outside=False)
    assert found.starts.tolist() == [1, 2, 3]
    found = find_entities(starts, ends, probs, o_index=2)
    assert found.starts.tolist() == [0, 3], "a tie with 'no entity' is no entity"
    assert found.labels.tolist() == [0, 1]


def test_documents_are_apart():
    # The same probabilities in two documents of a batch, an empty one in between.
    spans = scored([(0, 2, 1, 0.8), (1, 2, 2, 0.9), (2, 4, 1, 0.8), (3, 4, 2, 0.9)])
    resolved = resolve_overlap(spans, overlap="flat", n_tokens=4)
    docs = by_document(resolved, np.array([0, 2, 2, 4]))
    assert [as_tuples(doc) for doc in docs] == [[(1, 2, 2, 0.9)], [], [(1, 2, 2, 0.9)]]


def test_nothing_to_decode():
    empty = find_entities(
        np.empty(0, dtype=np.int64),
        np.empty(0, dtype=np.int64),
        np.empty((0, 3), dtype=np.float32),
        o_index=0,
    )
    assert len(empty) == 0
    for overlap in ("flat", "nested", "all"):
        assert len(resolve_overlap(empty, overlap=overlap, n_tokens=0)) == 0
    assert [len(doc) for doc in by_document(empty, np.array([0, 0]))] == [0]
    only_outside = find_entities(np.array([0]), np.array([1]), np.ones((1, 1)), o_index=0)
    assert len(only_outside) == 0


def test_parts_join_in_order():
    first, second = scored([(0, 1, 1, 0.5)]), scored([(2, 4, 2, 0.7), (1, 2, 1, 0.6)])
    joined = join([first, join([]), second])
    assert as_tuples(joined) == as_tuples(first) + as_tuples(second)


def test_unknown_overlap():
    with pytest.raises(ValueError, match="R105"):
        resolve_overlap(join([]), overlap="some", n_tokens=0)
