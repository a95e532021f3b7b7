"""The figures of missampling, and the theory beside them."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from statistics import fmean, stdev
from typing import Any

# The last tokens of each class of lengths; longer documents form one more.
LENGTH_BINS = (5, 10, 15, 20, 30, 40, 60)


@dataclass(frozen=True)
class DocumentSample:
    """What one repetition drew from one document.

    repetition (int): Which repetition.
    length (int): Tokens of the document.
    negatives (int): Sampled negatives.
    missampled (int): How many of them are unlabeled entities.
    pool (int): Spans that could become negatives.
    unlabeled (int): How many of those are unlabeled entities.
    """

    repetition: int
    length: int
    negatives: int
    missampled: int
    pool: int
    unlabeled: int


def clean_probability(*, negatives: int, pool: int, unlabeled: int) -> float:
    """The probability that uniform sampling draws no unlabeled entity (Li et al. 2022, eq. 6):

    .. math:: q = \\prod_{0 \\le i < k} (1 - u / (N - i))

    The paper's N are all unlabeled spans; here it is the number of candidates to draw from, which
    is the same without a limit of the width, and smaller with one.

    negatives (int): k, how many are drawn.
    pool (int): N, how many to draw from.
    unlabeled (int): u, how many of them are unlabeled entities.
    RETURNS (float): The probability.
    """
    if negatives + unlabeled > pool:
        return 1.0 if unlabeled == 0 or negatives == 0 else 0.0
    # The product is C(N - u, k) / C(N, k).
    log = math.lgamma
    return math.exp(
        log(pool - unlabeled + 1)
        - log(pool - unlabeled - negatives + 1)
        - log(pool + 1)
        + log(pool - negatives + 1)
    )


def clean_bound(rate: float, length: int) -> float:
    """The paper's lower bound of that probability (eq. 11), :math:`1 - 4 λ √n / (n - 1)`. It
    holds if there is no limit of the width and no more than √n entities.

    rate (float): λ, negatives a token.
    length (int): n, tokens.
    RETURNS (float): The bound, 0 where it says nothing.
    """
    if length < 2:
        return 0.0
    return max(0.0, 1.0 - 4.0 * rate * math.sqrt(length) / (length - 1))


@dataclass(frozen=True)
class LengthClass:
    """Documents of similar length, over all repetitions.

    low (int): The fewest tokens.
    high (int): The most tokens that occur.
    documents (int): Documents, each counted once.
    negatives (int): Sampled negatives.
    missampled (int): How many of them are unlabeled entities.
    rate (float): Missampled by negatives.
    rate_if_uniform (float): The rate to expect of as many uniformly drawn spans.
    clean (float): Share of the samples without any unlabeled entity.
    clean_if_uniform (float): What eq. 6 says of as many uniformly drawn spans.
    clean_bound (Optional[float]): The mean of eq. 11; None if the sampler has no rate a token.
    """

    low: int
    high: int
    documents: int
    negatives: int
    missampled: int
    rate: float
    rate_if_uniform: float
    clean: float
    clean_if_uniform: float
    clean_bound: float | None


@dataclass(frozen=True)
class SamplerMissampling:
    """The missampling of one sampler.

    name (str): The sampler.
    rate (Optional[float]): λ, its negatives a token, if that is how it counts.
    rates (List[float]): The missampling rate of each repetition (eq. 12).
    mean (float): Their mean.
    sd (float): Their standard deviation.
    negatives (int): Sampled negatives in all repetitions.
    missampled (int): How many of them are unlabeled entities.
    mean_if_uniform (float): The rate to expect if as many spans of each document were drawn
        uniformly.
    by_length (List[LengthClass]): The same by length.
    """

    name: str
    rate: float | None
    rates: list[float]
    mean: float
    sd: float
    negatives: int
    missampled: int
    mean_if_uniform: float
    by_length: list[LengthClass]

    @classmethod
    def from_samples(
        cls, name: str, rate: float | None, samples: Sequence[DocumentSample]
    ) -> "SamplerMissampling":
        """name (str): The sampler.
        rate (Optional[float]): Its negatives a token, if that is how it counts.
        samples (Sequence[DocumentSample]): All documents in all repetitions.
        RETURNS (SamplerMissampling): The figures.
        """
        repetitions = sorted({sample.repetition for sample in samples})
        rates = [
            _rate([sample for sample in samples if sample.repetition == number])
            for number in repetitions
        ]
        return cls(
            name=name,
            rate=rate,
            rates=rates,
            mean=fmean(rates) if rates else 0.0,
            sd=stdev(rates) if len(rates) > 1 else 0.0,
            negatives=sum(sample.negatives for sample in samples),
            missampled=sum(sample.missampled for sample in samples),
            mean_if_uniform=_rate_if_uniform(samples),
            by_length=_length_classes(rate, samples, n_repetitions=len(repetitions)),
        )


@dataclass
class MissamplingReport:
    """The missampling of some samplers on one corpus.

    epoch (int): Completed epochs, as the samplers were told.
    max_epochs (int): Epochs in all.
    documents (int): Documents.
    entities (int): Entities of the gold corpus.
    unlabeled (int): How many of them are unlabeled and could be sampled.
    unreachable (int): How many are unlabeled and could not: too wide, or on missing tokens.
    samplers (List[SamplerMissampling]): The figures.
    """

    epoch: int
    max_epochs: int
    documents: int = 0
    entities: int = 0
    unlabeled: int = 0
    unreachable: int = 0
    samplers: list[SamplerMissampling] = field(default_factory=list)

    def add_batch(self, *, documents: int, entities: int, unlabeled: int, unreachable: int) -> None:
        """Count a batch."""
        self.documents += documents
        self.entities += entities
        self.unlabeled += unlabeled
        self.unreachable += unreachable

    def as_dict(self) -> dict[str, Any]:
        """RETURNS (Dict[str, Any]): The figures, for JSON."""
        return asdict(self)


def _rate(samples: Sequence[DocumentSample]) -> float:
    negatives = sum(sample.negatives for sample in samples)
    return sum(sample.missampled for sample in samples) / negatives if negatives else 0.0


def _rate_if_uniform(samples: Sequence[DocumentSample]) -> float:
    negatives = sum(sample.negatives for sample in samples)
    expected = sum(
        sample.negatives * sample.unlabeled / sample.pool for sample in samples if sample.pool
    )
    return expected / negatives if negatives else 0.0


def _length_classes(
    rate: float | None, samples: Sequence[DocumentSample], *, n_repetitions: int
) -> list[LengthClass]:
    classes = []
    lows = (1, *(high + 1 for high in LENGTH_BINS))
    for low, high in zip(lows, (*LENGTH_BINS, math.inf), strict=True):
        own = [sample for sample in samples if low <= sample.length <= high]
        if own:
            classes.append(_length_class(rate, own, low, n_repetitions))
    return classes


def _length_class(
    rate: float | None, samples: Sequence[DocumentSample], low: int, n_repetitions: int
) -> LengthClass:
    return LengthClass(
        low=low,
        high=max(sample.length for sample in samples),
        documents=len(samples) // n_repetitions,
        negatives=sum(sample.negatives for sample in samples),
        missampled=sum(sample.missampled for sample in samples),
        rate=_rate(samples),
        rate_if_uniform=_rate_if_uniform(samples),
        clean=fmean(sample.missampled == 0 for sample in samples),
        clean_if_uniform=fmean(
            clean_probability(
                negatives=sample.negatives, pool=sample.pool, unlabeled=sample.unlabeled
            )
            for sample in samples
        ),
        clean_bound=None
        if rate is None
        else fmean(clean_bound(rate, sample.length) for sample in samples),
    )
