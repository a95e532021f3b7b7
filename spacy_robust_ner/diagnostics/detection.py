"""How well a low value finds the tokens of unlabeled entities among all that are marked "O"."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

# The shares to remove that the paper of the two-step method tries.
SHARES = tuple(0.1 * 2.0**-i for i in range(5, -1, -1))
_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
_CURVE_STEPS, _CURVE_START = 60, 0.001


@dataclass(frozen=True)
class ValueSummary:
    """The values of some tokens.

    count (int): How many.
    mean (float): Their mean.
    sd (float): Their standard deviation.
    quantiles (Dict[str, float]): Their quantiles, by "0.05", "0.25", "0.5", "0.75" and "0.95".
    """

    count: int
    mean: float
    sd: float
    quantiles: dict[str, float]


@dataclass(frozen=True)
class DetectionPoint:
    """What comes of removing a share of the tokens, the lowest values first.

    share (float): The share.
    removed (int): How many tokens that is.
    precision (float): The share of the removed tokens that are of unlabeled entities.
    recall (float): The share of the tokens of unlabeled entities that are removed.
    """

    share: float
    removed: int
    precision: float
    recall: float


@dataclass(frozen=True)
class Detection:
    """Precision and recall by the share removed.

    base_rate (float): The precision of removing at random: the share of all candidates that are
        of unlabeled entities.
    auc (float): The probability that a token of an unlabeled entity has a lower value than one
        that is "O" by right; a half by chance.
    average_precision (float): The mean of the precision at each token of an unlabeled entity;
        the base rate by chance.
    points (List[DetectionPoint]): At the shares of the paper.
    curve (List[DetectionPoint]): At many shares up to all.
    """

    base_rate: float
    auc: float
    average_precision: float
    points: list[DetectionPoint]
    curve: list[DetectionPoint]

    def at(self, share: float) -> DetectionPoint:
        """RETURNS (DetectionPoint): The point of one of the paper's shares."""
        return next(point for point in self.points if point.share == share)


def summarize(values: Floats) -> ValueSummary | None:
    """values (NDArray[float64]): The values. Shape: (tokens,).
    RETURNS (Optional[ValueSummary]): Their summary; None of nothing.
    """
    if not len(values):
        return None
    quantiles = np.quantile(values, _QUANTILES).tolist()
    return ValueSummary(
        count=len(values),
        mean=float(values.mean()),
        sd=float(values.std()),
        quantiles={f"{q:g}": value for q, value in zip(_QUANTILES, quantiles, strict=True)},
    )


def separation(low: ValueSummary, high: ValueSummary) -> float:
    """RETURNS (float): By how much one mean is below the other, in standard deviations of a token
    (the root of the mean of both variances); 0 if there is no spread at all.
    """
    spread = math.sqrt((low.sd**2 + high.sd**2) / 2)
    return (high.mean - low.mean) / spread if spread else 0.0


def detect(values: Floats, is_unlabeled: Bools) -> Detection:
    """Remove the lowest values first. Of equal values, the first in order is removed first.

    values (NDArray[float64]): The values of all candidates. Shape: (candidates,).
    is_unlabeled (NDArray[bool]): Which of them are tokens of unlabeled entities, at least one and
        not all. Shape: (candidates,).
    RETURNS (Detection): Precision and recall.
    """
    hits = np.cumsum(is_unlabeled[np.argsort(values, kind="stable")])
    total, hidden = len(values), int(hits[-1])
    found_at = np.flatnonzero(np.diff(hits, prepend=0)) + 1

    def point(share: float) -> DetectionPoint:
        # As many as two-step learning removes.
        removed = math.ceil(share * total - 1e-9)
        found = int(hits[removed - 1])
        return DetectionPoint(share, removed, found / removed, found / hidden)

    curve = np.geomspace(_CURVE_START, 1.0, _CURVE_STEPS + 1).tolist()
    return Detection(
        base_rate=hidden / total,
        auc=_auc(values[is_unlabeled], values[~is_unlabeled]),
        average_precision=float((np.arange(1, hidden + 1) / found_at).mean()),
        points=[point(share) for share in SHARES],
        curve=[point(share) for share in curve],
    )


def _auc(low: Floats, high: Floats) -> float:
    ordered = np.sort(high)
    below = np.searchsorted(ordered, low, side="left")
    not_above = np.searchsorted(ordered, low, side="right")
    return float((len(high) - (below + not_above) / 2).mean() / len(high))
