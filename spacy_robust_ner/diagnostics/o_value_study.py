"""Explorations with several methods and seeds, and what they say about the paper's claims."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

from .detection import SHARES
from .exploration import EpochValues, Exploration

# Reads a figure of an epoch.
Reading = Callable[[EpochValues], float]

HOLDS, IN_PART, FAILS = "holds", "in part", "does not hold"
# Epochs of exploration that the paper considers, with the extra time that it reports for them.
TIME_LIMITS = {1: 0.08, 2: 0.14, 3: 0.20}
# The paper's figures of detection are those of a model after two epochs.
DETECTION_EPOCH = 2
# What is left of a difference that has almost disappeared, and of one that has become smaller.
GONE, SMALLER = 0.25, 0.9
_ANGLE, _SOFTMAX = "AngleHead", "SoftmaxHead"
_ROUGHLY = 0.005


@dataclass(frozen=True)
class Spread:
    """A figure over seeds.

    mean (float): The mean.
    low (float): The least.
    high (float): The greatest.
    """

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Claim:
    """What the paper says, and what came out.

    topic (str): The claim in a few words, with its place in the paper.
    statement (str): The claim.
    method (str): The method that it was tested with.
    verdict (str): Whether it holds.
    figures (str): The figures that say so.
    """

    topic: str
    statement: str
    method: str
    verdict: str
    figures: str


@dataclass(frozen=True)
class OValueStudy:
    """runs (List[Exploration]): All runs, of the same corpus and number of epochs.
    run_epochs (int): Epochs of the training run that exploration is compared with.
    """

    runs: list[Exploration]
    run_epochs: int = 20

    @property
    def names(self) -> list[str]:
        """RETURNS (List[str]): The methods, in order."""
        return list(dict.fromkeys(run.name for run in self.runs))

    @property
    def n_epochs(self) -> int:
        """RETURNS (int): How long was trained."""
        return len(self.runs[0].epochs)

    @property
    def seeds(self) -> list[int]:
        """RETURNS (List[int]): The seeds."""
        return sorted({run.seed for run in self.runs})

    def of(self, name: str) -> list[Exploration]:
        """RETURNS (List[Exploration]): The runs of a method, one for each seed."""
        return [run for run in self.runs if run.name == name]

    def figure(self, name: str, epoch: int, read: Reading) -> Spread:
        """name (str): The method.
        epoch (int): Completed epochs, at least 1.
        read (Reading): Reads the figure.
        RETURNS (Spread): The figure over seeds.
        """
        values = [read(run.epochs[epoch - 1]) for run in self.of(name)]
        return Spread(fmean(values), min(values), max(values))

    def extra_time(self, name: str, epochs: int) -> float:
        """RETURNS (float): Processor time of so many epochs of exploration and the prediction
        pass after them, by that of a whole run without evaluation.
        """
        return fmean(
            (
                sum(epoch.training_seconds for epoch in run.epochs[:epochs])
                + run.epochs[epochs - 1].ranking_seconds
            )
            / (self.run_epochs * fmean(epoch.training_seconds for epoch in run.epochs))
            for run in self.of(name)
        )

    @property
    def detection_epoch(self) -> int:
        """RETURNS (int): The epoch at which detection is compared."""
        return min(DETECTION_EPOCH, self.n_epochs)


def precision_at(share: float) -> Reading:
    """RETURNS (Reading): The precision at one of SHARES."""
    return lambda values: values.detection.at(share).precision


def recall_at(share: float) -> Reading:
    """RETURNS (Reading): The recall at one of SHARES."""
    return lambda values: values.detection.at(share).recall


def check_claims(study: OValueStudy) -> list[Claim]:
    """RETURNS (List[Claim]): Each claim with each method that it can be tested with."""
    claims = []
    for test in (_lower_at_first, _closing, _falling_precision):
        claims += [test(study, name) for name in study.names]
    for angle, softmax in comparable_heads(study):
        claims.append(_angle_is_better(study, angle, softmax))
    claims += [_cheap(study, name) for name in study.names]
    return claims


def comparable_heads(study: OValueStudy) -> list[tuple[str, str]]:
    """RETURNS (List[Tuple[str, str]]): Methods with the angle head, each with the one that only
    differs in having the softmax head.
    """
    kinds = {run.name: (run.head, run.crf, run.encoder) for run in study.runs}
    return [
        (one, other)
        for one, (head, *rest) in kinds.items()
        for other, (other_head, *other_rest) in kinds.items()
        if (head, other_head) == (_ANGLE, _SOFTMAX) and rest == other_rest
    ]


def _verdict(flags: Sequence[bool]) -> str:
    return HOLDS if all(flags) else IN_PART if any(flags) else FAILS


def _lower_at_first(study: OValueStudy, name: str) -> Claim:
    early = range(1, min(3, study.n_epochs) + 1)
    gaps = [study.figure(name, epoch, lambda values: values.gap) for epoch in early]
    apart = [study.figure(name, epoch, lambda values: values.separation).mean for epoch in early]
    return Claim(
        "Lower at first (figure 2)",
        "Unlabeled entities have a lower mean O-value than true O in the first epochs",
        name,
        _verdict([gap.low > 0 for gap in gaps]),
        f"lower by {_list([gap.mean for gap in gaps])} after {_epochs(early)}, which is "
        f"{_list(apart)} standard deviations of a token",
    )


def _closing(study: OValueStudy, name: str) -> Claim:
    epochs = range(1, study.n_epochs + 1)
    gaps = [study.figure(name, epoch, lambda values: values.gap).mean for epoch in epochs]
    apart = [study.figure(name, epoch, lambda values: values.separation).mean for epoch in epochs]
    widest = max(gaps)
    left = gaps[-1] / widest if widest > 0 else 1.0
    return Claim(
        "Not for long (figure 2)",
        "The difference becomes smaller with more epochs and almost disappears",
        name,
        HOLDS if left <= GONE else IN_PART if left <= SMALLER else FAILS,
        f"widest {widest:.2f} after epoch {gaps.index(widest) + 1}, {gaps[-1]:.2f} after epoch "
        f"{study.n_epochs}: {left:.0%} of it is left; in standard deviations {max(apart):.2f} at "
        f"most (epoch {apart.index(max(apart)) + 1}) and {apart[-1]:.2f} at the end",
    )


def _falling_precision(study: OValueStudy, name: str) -> Claim:
    epoch = study.detection_epoch
    precisions = [study.figure(name, epoch, precision_at(share)).mean for share in SHARES]
    recall = study.figure(name, epoch, recall_at(SHARES[-1])).mean
    steps = [after <= before + _ROUGHLY for before, after in pairwise(precisions)]
    return Claim(
        "Surest first (figure 3)",
        "Precision falls as more tokens are removed, and only a part of the unlabeled entities is "
        "found",
        name,
        _verdict([*steps, recall < 1]),
        f"after epoch {epoch}, precision {precisions[0]:.0%} with {SHARES[0]:.2%} of the tokens "
        f"removed and {precisions[-1]:.0%} with {SHARES[-1]:.0%} removed, which finds "
        f"{recall:.0%} of the unlabeled tokens",
    )


def _angle_is_better(study: OValueStudy, angle: str, softmax: str) -> Claim:
    early = range(1, min(3, study.n_epochs) + 1)
    better, texts = [], []
    for epoch in early:
        at_shares = [
            study.figure(angle, epoch, precision_at(share)).mean
            > study.figure(softmax, epoch, precision_at(share)).mean
            for share in SHARES
        ]
        averages = [
            study.figure(name, epoch, lambda values: values.detection.average_precision).mean
            for name in (angle, softmax)
        ]
        texts.append(
            f"epoch {epoch}: at {sum(at_shares)} of {len(SHARES)} shares, average precision "
            f"{averages[0]:.1%} against {averages[1]:.1%}"
        )
        if epoch == study.detection_epoch:
            better = at_shares
    return Claim(
        "Angle detects better (figure 6)",
        "Decision values that sum to zero detect with higher precision and recall",
        angle,
        _verdict(better),
        f"better than {softmax} after " + "; ".join(texts),
    )


def _cheap(study: OValueStudy, name: str) -> Claim:
    limits = {n: limit for n, limit in TIME_LIMITS.items() if n <= study.n_epochs}
    extra = {n: study.extra_time(name, n) for n in limits}
    return Claim(
        "Little extra time (table 8)",
        "Exploring for n = 1, 2, 3 epochs adds at most 8%, 14%, 20% to the training time",
        name,
        _verdict([extra[n] <= limit for n, limit in limits.items()]),
        "for "
        + ", ".join(f"n = {n} it is {share:.1%}" for n, share in extra.items())
        + f" of a run of {study.run_epochs} epochs, evaluation left out",
    )


def _list(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.2f}" for value in values)


def _epochs(numbers: Sequence[int]) -> str:
    return f"epoch{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"
