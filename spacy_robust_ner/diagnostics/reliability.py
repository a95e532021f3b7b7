"""Whether an entity with probability 0.8 is right eight times in ten."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

BINS = 10


@dataclass(frozen=True)
class ReliabilityBin:
    """Predicted entities of similar probability.

    count (int): How many.
    confidence (float): Their mean probability.
    precision (float): The share of right ones.
    """

    count: int
    confidence: float
    precision: float


@dataclass(frozen=True)
class Reliability:
    """How far the probabilities of entities can be trusted.

    bins (List[ReliabilityBin]): From improbable to probable, without empty ones.
    count (int): Predicted entities in all.
    calibration_error (float): Mean distance of probability and precision over the bins, weighted
        by count ("expected calibration error"); 0 without entities.
    """

    bins: list[ReliabilityBin]
    count: int
    calibration_error: float


def measure_reliability(
    scores: NDArray[np.float64], correct: NDArray[np.bool_], *, bins: int = BINS
) -> Reliability:
    """Compare probabilities with precision in bins of equal width.

    scores (NDArray): Probabilities of predicted entities. Shape: (entities,).
    correct (NDArray): Which of them are right. Shape: (entities,).
    bins (int): How many bins between 0 and 1.
    RETURNS (Reliability): The figures.
    """
    place = np.clip((scores * bins).astype(np.int64), 0, bins - 1)
    counts = np.bincount(place, minlength=bins)
    sums = np.bincount(place, weights=scores, minlength=bins)
    right = np.bincount(place, weights=correct, minlength=bins)
    filled = [
        ReliabilityBin(int(count), float(total / count), float(hits / count))
        for count, total, hits in zip(counts, sums, right, strict=True)
        if count
    ]
    return Reliability(
        bins=filled,
        count=len(scores),
        calibration_error=float(np.abs(sums - right).sum() / max(1, len(scores))),
    )
