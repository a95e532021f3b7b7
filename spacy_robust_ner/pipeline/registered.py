"""Config-facing builders of the span component's pluggable parts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from ..errors import Errors
from ..span.contrastive import ContrastiveTerm, Denominator
from ..span.losses import NRCES, CrossEntropy, Normalization, NRCESVariant
from ..span.positive_unlabeled import BoundedNonNegativePURisk, ConfidencePURisk, Surrogate
from ..span.ratio import RatioTerm, Unit
from ..span.retrieval import MixingForm
from ..span.samplers import (
    AllSampler,
    FractionSampler,
    RankingEnd,
    SimilarityOf,
    TopSimilaritySampler,
    UniformSampler,
    WeightedSampler,
)
from ..span.segmentation_objective import SegmentationLikelihood
from ..types import NegativeSampler, SpanLoss
from .label_statistics import EstimatedRatio


def make_all_sampler_v1() -> NegativeSampler:
    """Every unlabeled span is a negative: the naive baseline."""
    return AllSampler()


def make_uniform_sampler_v1(rate: float = 0.35, seed: int = 0) -> NegativeSampler:
    """⌈rate · tokens⌉ unlabeled spans a document (Li et al. 2021)."""
    return UniformSampler(rate=rate, seed=seed)


def make_weighted_sampler_v1(
    rate: float = 0.35,
    mu: float = 8.0,
    outside_in_max: bool = False,
    prefer_hard: bool = True,
    seed: int = 0,
) -> NegativeSampler:
    """⌈rate · tokens⌉ unlabeled spans a document, those first that are hard but do not look like
    entities (Li et al. 2022)."""
    return WeightedSampler(
        rate=rate,
        mu=mu,
        outside_in_max=outside_in_max,
        prefer_hard=prefer_hard,
        seed=seed,
    )


def make_top_similarity_sampler_v1(
    share: float = 0.05,
    end: RankingEnd = "top",
    of: SimilarityOf = "hidden",
    dropout: bool = True,
    seed: int = 0,
) -> NegativeSampler:
    """The unlabeled spans of the batch that are most like its entities (Xu et al. 2023), or least;
    by the head's hidden vectors, with or without dropout, or by the representations that its first
    layer sees."""
    return TopSimilaritySampler(share=share, end=end, of=of, dropout=dropout, seed=seed)


def make_fraction_sampler_v1(
    share: float = 0.5, each_epoch: bool = False, seed: int = 0
) -> NegativeSampler:
    """A random share of the unlabeled spans, drawn once or in each epoch (Kang et al. 2022)."""
    return FractionSampler(share=share, each_epoch=each_epoch, seed=seed)


def make_cross_entropy_v1(normalization: Normalization = "document") -> SpanLoss:
    """Cross entropy of entities and negatives."""
    return CrossEntropy(normalization=normalization)


def make_nrces_v1(
    w: float = 5.0, variant: NRCESVariant = "full", normalization: Normalization = "document"
) -> SpanLoss:
    """Noise-robust loss: cross entropy that turns into a bounded term for negatives (Kang et al.
    2022)."""
    return NRCES(w=w, variant=variant, normalization=normalization)


def make_segmentation_likelihood_v1() -> SegmentationLikelihood:
    """Semi-Markov likelihood: entities compete for tokens, and unlabeled spans that the sampler
    leaves alone are free to be entities or not."""
    return SegmentationLikelihood()


@dataclass(frozen=True)
class PriorLoss:
    """A loss that needs the share of each label among the candidates, which only the labels of
    the pipeline and its training data give.

    kind (type): The class of the loss.
    settings (Mapping[str, object]): Its other settings.
    priors (Dict[str, float]): Known shares by label; others are estimated.
    unlabeled_factor (float): How many entities there are for each labeled one.
    gamma (Optional[float]): Weight of the positives; None for one that lets all entities together
        weigh as much as all candidates. Entities are so few among the candidate spans that a model
        which never predicts any has next to no risk otherwise.
    """

    kind: type
    settings: Mapping[str, object]
    priors: dict[str, float]
    unlabeled_factor: float
    gamma: float | None

    def __post_init__(self) -> None:
        priors = list(self.priors.values())
        if min(priors, default=0.0) < 0 or sum(priors) >= 1:
            raise ValueError(Errors.R107.format(priors=priors))

    def build(self, labels: Sequence[str], labeled_shares: dict[str, float]) -> SpanLoss:
        """Make the loss.

        labels (Sequence[str]): The name of each label column.
        labeled_shares (Dict[str, float]): Share of each label among the candidate spans of the
            training data, as far as they are labeled.
        RETURNS (SpanLoss): The loss.
        """
        estimated = {
            label: self.unlabeled_factor * share for label, share in labeled_shares.items()
        }
        known = {**estimated, **self.priors}
        priors = [known.get(label, 0.0) for label in labels]
        gamma = 1.0 / (sum(priors) or 1.0) if self.gamma is None else self.gamma
        loss: SpanLoss = self.kind(priors=priors, gamma=gamma, **self.settings)
        return loss


def make_pu_risk_v1(
    priors: dict[str, float] | None = None,
    unlabeled_factor: float = 1.0,
    gamma: float | None = None,
    surrogate: Surrogate = "mae",
    one_vs_rest: bool = True,
) -> PriorLoss:
    """Bounded non-negative positive-unlabeled risk, bnPU (Peng et al. 2019)."""
    settings = {"surrogate": surrogate, "one_vs_rest": one_vs_rest}
    known = dict(priors or {})
    return PriorLoss(BoundedNonNegativePURisk, settings, known, unlabeled_factor, gamma)


def make_confidence_pu_risk_v1(
    priors: dict[str, float] | None = None,
    unlabeled_factor: float = 1.0,
    threshold: float = 0.5,
    gamma: float | None = None,
    surrogate: Surrogate = "mae",
) -> PriorLoss:
    """Confidence-based positive-unlabeled risk, Conf-MPU (Zhou et al. 2022)."""
    settings = {"threshold": threshold, "surrogate": surrogate}
    return PriorLoss(ConfidencePURisk, settings, dict(priors or {}), unlabeled_factor, gamma)


def make_contrastive_term_v1(
    weight: float = 0.1,
    temperature: float = 0.1,
    denominator: Denominator = "all",
    max_outside: int = 512,
    seed: int = 0,
) -> ContrastiveTerm:
    """Supervised contrastive term on span vectors (Si et al. 2022)."""
    return ContrastiveTerm(
        weight=weight,
        temperature=temperature,
        denominator=denominator,
        max_outside=max_outside,
        seed=seed,
    )


def make_ratio_term_v1(
    ratio: float | None = None,
    margin: float = 0.05,
    margin_below: float | None = None,
    weight: float = 10.0,
    unit: Unit = "tokens",
) -> RatioTerm | EstimatedRatio[RatioTerm]:
    """Hold the expected number of entities (or entity tokens) a token near a known ratio (after
    Effland and Collins 2021). Without a ratio, it is estimated from the training data."""
    build = partial(RatioTerm, margin=margin, margin_below=margin_below, weight=weight, unit=unit)
    return EstimatedRatio(build, unit) if ratio is None else build(ratio=ratio)


@dataclass
class Retrieval:
    """Settings of retrieval-augmented inference; they can be changed on a loaded pipeline.

    alpha (float): Share of retrieval in the mixture.
    form (str): "probability" or "log".
    decay (float): How much of the running centroids an update keeps during training.
    """

    alpha: float = 0.5
    form: MixingForm = "probability"
    decay: float = 0.99

    def __post_init__(self) -> None:
        for name, value in (("alpha", self.alpha), ("decay", self.decay)):
            if not 0 <= value <= 1:
                raise ValueError(
                    Errors.R103.format(name=name, value=value, wanted="between 0 and 1")
                )


def make_retrieval_v1(
    alpha: float = 0.5, form: MixingForm = "probability", decay: float = 0.99
) -> Retrieval:
    """Mix the model's probabilities with the similarity to each label's centroid (Si et al.
    2022)."""
    return Retrieval(alpha, form, decay)
