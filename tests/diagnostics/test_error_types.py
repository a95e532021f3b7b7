import random
from itertools import permutations

import pytest

from spacy_robust_ner.diagnostics.error_types import classify, count_kinds
from spacy_robust_ner.diagnostics.passages import CONTEXT, WHOLE, cut_passages
from spacy_robust_ner.diagnostics.results import Prediction


def document(gold=(), predicted=(), masked=(), length=20, split="test"):
    return Prediction(
        split=split,
        words=[f"w{i}" for i in range(length)],
        spaces=[True] * length,
        gold=frozenset(gold) | frozenset(masked),
        masked=frozenset(masked),
        predicted=dict.fromkeys(predicted, 0.5),
    )


def kinds(doc, side):
    return {(m.start, m.end, m.label): m.kind for m in classify(doc) if m.side == side}


def test_each_kind_of_error():
    doc = document(
        gold=[(0, 1, "A"), (2, 4, "A"), (5, 7, "B"), (8, 9, "B")],
        predicted=[(0, 1, "A"), (2, 4, "B"), (5, 6, "B"), (12, 13, "A")],
    )
    assert kinds(doc, "gold") == {
        (0, 1, "A"): "correct",
        (2, 4, "A"): "wrong label",
        (5, 7, "B"): "wrong boundaries",
        (8, 9, "B"): "missed",
    }
    assert kinds(doc, "predicted") == {
        (0, 1, "A"): "correct",
        (2, 4, "B"): "wrong label",
        (5, 6, "B"): "wrong boundaries",
        (12, 13, "A"): "spurious",
    }
    counts = count_kinds(classify(doc))
    names = ("correct", "missed", "spurious", "wrong label", "wrong boundaries")
    assert counts == dict.fromkeys(names, 1)


def test_masked_entities_of_training_text():
    doc = document(
        gold=[(0, 1, "A")],
        masked=[(2, 3, "A"), (4, 5, "A"), (6, 7, "A"), (8, 10, "A")],
        predicted=[(2, 3, "A"), (6, 7, "B"), (8, 9, "A")],
        split="train",
    )
    assert kinds(doc, "gold") == {
        (0, 1, "A"): "missed",
        (2, 3, "A"): "recovered",
        (4, 5, "A"): "not recovered",
        (6, 7, "A"): "wrong label",
        (8, 10, "A"): "wrong boundaries",
    }
    assert kinds(doc, "predicted")[(2, 3, "A")] == "recovered"
    assert [mark.masked for mark in classify(doc) if mark.side == "predicted"] == [True] * 3


def test_a_span_overlaps_two_entities():
    doc = document(gold=[(0, 4, "A"), (4, 6, "A")], predicted=[(1, 6, "A")])
    assert kinds(doc, "gold") == {(0, 4, "A"): "wrong boundaries", (4, 6, "A"): "missed"}


def test_counts_agree_with_exact_matching_and_with_the_most_pairs():
    rng = random.Random(0)
    for _ in range(200):
        spans = [(s, s + w, label) for s in range(6) for w in (1, 2, 3) for label in "AB"]
        gold, predicted = (set(rng.sample(spans, rng.randint(0, 4))) for _ in range(2))
        counts = count_kinds(classify(document(gold, predicted)))
        right = len(gold & predicted)
        paired = counts.get("wrong label", 0) + counts.get("wrong boundaries", 0)
        assert counts.get("correct", 0) == right
        assert counts.get("missed", 0) == len(gold) - right - paired
        assert counts.get("spurious", 0) == len(predicted) - right - paired
        one, two = sorted((gold - predicted, predicted - gold), key=len)
        most = max(
            sum(a[0] < b[1] and b[0] < a[1] for a, b in zip(sorted(one), other, strict=True))
            for other in permutations(two, len(one))
        )
        # Greedy pairs are at least half of the most that there can be.
        assert most / 2 <= paired <= most


def test_short_documents_are_shown_whole_and_right_ones_not_at_all():
    right = document(gold=[(0, 1, "A")], predicted=[(0, 1, "A")])
    assert list(cut_passages(right, classify(right))) == []
    wrong = document(gold=[(3, 4, "A"), (0, 1, "B")], predicted=[(0, 1, "B")])
    (passage,) = cut_passages(wrong, classify(wrong))
    assert passage.tokens == tuple(f"w{i} " for i in range(20))
    assert [mark.kind for mark in passage.marks] == ["correct", "missed", "correct"]


@pytest.mark.parametrize("gap", [1, CONTEXT, 2 * CONTEXT, 2 * CONTEXT + 1, 100])
def test_long_documents_are_cut_around_errors(gap):
    length = WHOLE + 200
    first, second = (50, 52, "A"), (52 + gap, 53 + gap, "A")
    doc = document(gold=[first, second, (0, 1, "A")], predicted=[(0, 1, "A")], length=length)
    passages = list(cut_passages(doc, classify(doc)))
    shown = set()
    for passage in passages:
        assert passage.cut_before
        assert passage.cut_after
        for mark in passage.marks:
            words = "".join(passage.tokens[mark.start : mark.end]).split()
            shown.add((words[0], mark.kind))
    assert shown == {("w50", "missed"), (f"w{52 + gap}", "missed")}
    assert len(passages) == (1 if gap <= 2 * CONTEXT else 2)
    assert all(len(passage.tokens) <= 2 * CONTEXT + gap + 3 for passage in passages)
