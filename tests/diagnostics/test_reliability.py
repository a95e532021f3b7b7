import numpy as np
import pytest

from spacy_robust_ner.diagnostics.reliability import measure_reliability


def test_bins_agree_with_a_loop():
    rng = np.random.default_rng(0)
    scores = rng.random(500)
    correct = rng.random(500) < scores**2
    found = measure_reliability(scores, correct, bins=5)
    error = 0.0
    for i, item in enumerate(found.bins):
        own = [j for j, score in enumerate(scores) if i / 5 <= score < (i + 1) / 5]
        assert item.count == len(own)
        assert item.confidence == pytest.approx(np.mean([scores[j] for j in own]))
        assert item.precision == pytest.approx(np.mean([correct[j] for j in own]))
        error += len(own) / 500 * abs(item.confidence - item.precision)
    assert found.calibration_error == pytest.approx(error)
    assert found.count == sum(item.count for item in found.bins) == 500


def test_certainty_belongs_to_the_last_bin_and_nothing_has_no_error():
    found = measure_reliability(np.array([1.0, 0.0]), np.array([True, False]))
    assert [item.confidence for item in found.bins] == [0.0, 1.0]
    assert found.calibration_error == 0.0
    empty = measure_reliability(np.empty(0), np.empty(0, dtype=bool))
    assert (empty.bins, empty.count, empty.calibration_error) == ([], 0, 0.0)
