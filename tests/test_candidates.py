import itertools

import numpy as np
import pytest

from spacy_robust_ner.candidates import CandidateTable, annotate

BATCHES = [[], [0], [1], [0, 1, 0], [2, 0, 3], [5, 1, 7, 4]]
WIDTHS = [None, 1, 2, 3, 10]
CASES = list(itertools.product(BATCHES, WIDTHS))


def listed(lengths, max_width):
    """Every candidate as (document, start, end) in the document, in the promised order."""
    return [
        (doc, start, end)
        for doc, length in enumerate(lengths)
        for start in range(length)
        for end in range(start + 1, length + 1)
        if max_width is None or end - start <= max_width
    ]


def as_tuples(table, spans):
    offset = table.doc_starts[spans.doc_index]
    return list(
        zip(
            spans.doc_index.tolist(),
            (spans.starts - offset).tolist(),
            (spans.ends - offset).tolist(),
            strict=True,
        )
    )


def columns(spans):
    return tuple(np.array(column, dtype=np.int64) for column in zip(*spans, strict=True))


@pytest.mark.parametrize(("lengths", "max_width"), CASES)
def test_table_lists_every_span_once(lengths, max_width):
    table = CandidateTable(lengths, max_width=max_width)
    expected = listed(lengths, max_width)
    assert len(table) == len(expected)
    assert as_tuples(table, table.spans()) == expected
    assert table.spans().rows.tolist() == list(range(len(expected)))
    if expected:
        assert table.rows_of(*columns(expected)).tolist() == list(range(len(expected)))


@pytest.mark.parametrize(("lengths", "max_width"), CASES)
@pytest.mark.parametrize("budget", [1, 2, 5, 1000])
def test_chunks_are_the_table_in_pieces(lengths, max_width, budget):
    table = CandidateTable(lengths, max_width=max_width)
    chunks = list(table.chunks(budget))
    assert all(0 < len(chunk) <= budget for chunk in chunks)
    spans = [span for chunk in chunks for span in as_tuples(table, chunk)]
    assert spans == listed(lengths, max_width)


def test_long_document_without_width_limit_stays_within_the_budget():
    table = CandidateTable([20_000], max_width=None)
    assert len(table) == 20_000 * 20_001 // 2
    chunk = next(table.chunks(7_000))
    assert len(chunk) == 7_000
    assert set(chunk.starts.tolist()) == {0}
    last = table.spans(len(table) - 3)
    assert as_tuples(table, last) == [(0, 19_998, 19_999), (0, 19_998, 20_000), (0, 19_999, 20_000)]


def test_spans_at_takes_any_order():
    table = CandidateTable([3, 4], max_width=2)
    expected = listed([3, 4], 2)
    rows = np.array([7, 0, 4, 4])
    assert as_tuples(table, table.spans_at(rows)) == [expected[row] for row in rows]


def test_lookup_of_wide_and_impossible_spans():
    table = CandidateTable([4, 6], max_width=2)
    rows = table.rows_of(np.array([0, 1, 1]), np.array([0, 0, 4]), np.array([3, 2, 6]))
    assert rows[0] == -1
    assert as_tuples(table, table.spans_at(rows[1:])) == [(1, 0, 2), (1, 4, 6)]
    for doc, start, end in [(0, 2, 5), (0, -1, 1), (1, 3, 3), (2, 0, 1)]:
        with pytest.raises(ValueError, match="R101"):
            table.rows_of(np.array([doc]), np.array([start]), np.array([end]))


def test_settings_are_checked():
    with pytest.raises(ValueError, match="R100"):
        CandidateTable([3], max_width=0)
    with pytest.raises(ValueError, match="R102"):
        list(CandidateTable([3], max_width=1).chunks(0))


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("budget", [3, 1000])
@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("with_outside", [False, True])
def test_annotation_against_brute_force(seed, budget, flat, with_outside):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 7, size=4)
    lengths[1] = max(lengths[1], 3)
    max_width = [None, 1, 3][seed % 3]
    table = CandidateTable(lengths, max_width=max_width)
    every = listed(lengths, None)

    def draw(n):
        return [every[i] for i in rng.choice(len(every), size=min(n, len(every)), replace=False)]

    gold, rejected = draw(4), draw(5)
    labels = rng.integers(1, 4, size=len(gold))
    missing = rng.random(int(lengths.sum())) < 0.3
    complete = rng.random(len(lengths)) < 0.5
    outside = (rng.random(len(missing)) < 0.2) & ~missing & with_outside
    excluding = outside.copy()
    for doc, start, end in gold if flat else ():
        excluding[table.doc_starts[doc] + start : table.doc_starts[doc] + end] = True
    doc_index, starts, ends = columns(gold)
    annotation = annotate(
        table,
        doc_index=doc_index,
        starts=starts,
        ends=ends,
        labels=labels,
        missing=missing,
        complete=complete,
        rejected=columns(rejected),
        outside=outside if with_outside else None,
        flat=flat,
    )
    candidates = listed(lengths, max_width)
    wide = [span for span in gold if span not in candidates]
    assert annotation.n_too_wide == len(wide)
    labelled = {candidates[row] for row in annotation.positive_rows}
    assert labelled == set(gold) - set(wide)
    for row, label in zip(annotation.positive_rows, annotation.positive_labels, strict=True):
        assert label == labels[gold.index(candidates[row])]
    seen = 0
    for chunk in table.chunks(budget):
        masks = zip(
            as_tuples(table, chunk),
            annotation.is_positive(chunk),
            annotation.is_unknown(chunk),
            annotation.is_true_negative(chunk),
            strict=True,
        )
        for span, is_positive, is_unknown, is_true_negative in masks:
            doc, start, end = span
            offset = table.doc_starts[doc]
            touches = missing[offset + start : offset + end].any()
            assert is_positive == (span in gold)
            excluded = excluding[offset + start : offset + end].any()
            known = span in gold or span in rejected or excluded
            assert is_unknown == (touches and not known)
            vouched = span in rejected or excluded or (complete[doc] and not touches)
            assert is_true_negative == (vouched and span not in gold)
            seen += 1
    assert seen == len(candidates)


def test_first_label_of_a_span_counts():
    table = CandidateTable([3], max_width=None)
    annotation = annotate(
        table,
        doc_index=np.array([0, 0, 0]),
        starts=np.array([1, 0, 1]),
        ends=np.array([2, 1, 2]),
        labels=np.array([3, 1, 2]),
    )
    assert annotation.positive_rows.tolist() == [0, 3]
    assert annotation.positive_labels.tolist() == [1, 3]


def test_batch_without_annotation():
    table = CandidateTable([2], max_width=None)
    none = np.empty(0, dtype=np.int64)
    annotation = annotate(table, doc_index=none, starts=none, ends=none, labels=none)
    spans = table.spans()
    assert not annotation.is_positive(spans).any()
    assert not annotation.is_unknown(spans).any()
    assert not annotation.is_true_negative(spans).any()
