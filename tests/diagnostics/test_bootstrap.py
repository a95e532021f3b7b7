import numpy as np
import pytest

from spacy_robust_ner.diagnostics.bootstrap import (
    document_weights,
    micro_f1,
    paired_differences,
)


def brute_force_f1(rows):
    right, spurious, missed = (sum(row[i] for row in rows) for i in range(3))
    return 2 * right / (2 * right + spurious + missed) if right else 0.0


def make_counts(seed, documents=40, scale=3):
    return np.random.default_rng(seed).integers(0, scale, (documents, 3))


def test_differences_agree_with_a_loop_over_resamples():
    counts = {"naive": make_counts(0), "better": make_counts(1), "same": make_counts(0)}
    counts["better"][:, 0] += 2
    found = paired_differences(
        counts, {"better": "naive", "same": "naive"}, resamples=300, confidence=0.9, seed=7
    )
    drawn = []
    rng = np.random.default_rng(7)
    # The blocks of the fast way hold all 300 resamples of 40 documents at once.
    for chosen in rng.integers(0, 40, (300, 40)):
        one, other = (
            brute_force_f1([counts[name][i].tolist() for i in chosen])
            for name in ("better", "naive")
        )
        drawn.append(one - other)
    low, high = np.percentile(drawn, [5, 95])
    assert found["better"].low == pytest.approx(low, abs=1e-12)
    assert found["better"].high == pytest.approx(high, abs=1e-12)
    whole = brute_force_f1(counts["better"].tolist()) - brute_force_f1(counts["naive"].tolist())
    assert found["better"].value == pytest.approx(whole)
    assert found["better"].low < found["better"].value < found["better"].high
    assert found["better"].is_clear
    same = found["same"]
    assert (same.value, same.low, same.high, same.is_clear) == (0.0, 0.0, 0.0, False)


def test_weights_are_resamples_of_all_documents(monkeypatch):
    whole = np.concatenate(list(document_weights(25, resamples=40, seed=3)))
    assert whole.shape == (40, 25)
    assert (whole.sum(axis=1) == 25).all()
    assert whole.mean() == 1.0
    assert len({tuple(row) for row in whole.tolist()}) == 40
    monkeypatch.setattr("spacy_robust_ner.diagnostics.bootstrap._BLOCK", 7 * 25)
    blocks = list(document_weights(25, resamples=40, seed=3))
    assert [len(block) for block in blocks] == [7] * 5 + [5]
    assert (np.concatenate(blocks) == whole).all()


def test_interval_holds_the_true_difference_about_as_often_as_it_says():
    rng = np.random.default_rng(0)
    inside = 0
    for seed in range(100):
        # Each of 120 documents has 3 entities; one system finds 60%, the other 50% of them.
        counts = {}
        for name, share in (("one", 0.6), ("other", 0.5)):
            right = rng.binomial(3, share, 120)
            counts[name] = np.stack([right, np.zeros_like(right), 3 - right], axis=1)
        true = 2 * 0.6 / 1.6 - 2 * 0.5 / 1.5
        difference = paired_differences(counts, {"one": "other"}, resamples=400, seed=seed)["one"]
        inside += difference.low <= true <= difference.high
    assert 88 <= inside <= 100


def test_f1_of_nothing_is_zero():
    counts = np.array([[0, 0, 0], [0, 2, 1], [3, 1, 2]])
    assert micro_f1(counts).tolist() == [0.0, 0.0, pytest.approx(2 / 3)]
    assert paired_differences({}, {}) == {}
