"""Config-facing builders of the token component's pluggable parts."""

from functools import partial
from pathlib import Path

from ..annotation import PHRASES_KEY
from ..span.positive_unlabeled import Surrogate
from ..tagging.losses import CRFLikelihood, Normalization, PartialCRF, Removal, TokenCrossEntropy
from ..tagging.non_spans import NonSpanSampler
from ..tagging.ratio import ExpectedEntityRatio
from ..tagging.types import TokenLoss
from .completion import CompletionKind, CrossFitting, FileCompletion, StartingPoint
from .label_statistics import EstimatedRatio
from .token_losses import (
    CompletedPartialCRF,
    CompletionSource,
    DictionaryCRF,
    TokenPriorLoss,
)
from .two_step import TwoStep


def make_token_cross_entropy_v1(
    unknown_outside: bool = False, normalization: Normalization = "token"
) -> TokenLoss:
    """Cross entropy of each token's tag."""
    return TokenCrossEntropy(unknown_outside=unknown_outside, normalization=normalization)


def make_crf_likelihood_v1(
    removal: Removal = "emissions_and_transitions", normalization: Normalization = "document"
) -> TokenLoss:
    """Likelihood of the annotated tag sequence; removed tokens are disregarded."""
    return CRFLikelihood(removal=removal, normalization=normalization)


def make_partial_crf_v1(
    unknown_outside: bool = True, normalization: Normalization = "document"
) -> TokenLoss:
    """Likelihood of all tag sequences that agree with what is known (Yang et al. 2018)."""
    return PartialCRF(unknown_outside=unknown_outside, normalization=normalization)


def make_weighted_partial_crf_v1(
    completion: CompletionSource,
    unknown_outside: bool = True,
    normalization: Normalization = "document",
) -> TokenLoss:
    """The partial CRF with weights for the sequences (Jie et al. 2019)."""
    return CompletedPartialCRF(
        completion, unknown_outside=unknown_outside, normalization=normalization
    )


def make_fuzzy_crf_v1(
    matches_key: str | None = None,
    phrases_key: str | None = PHRASES_KEY,
    normalization: Normalization = "document",
) -> TokenLoss:
    """Likelihood of all tag sequences that a dictionary and a list of phrases allow (Shang et al.
    2018)."""
    return DictionaryCRF(
        matches_key=matches_key, phrases_key=phrases_key, normalization=normalization
    )


def make_token_pu_risk_v1(
    priors: dict[str, float] | None = None,
    unlabeled_factor: float = 1.0,
    gamma: float = 1.0,
    surrogate: Surrogate = "mae",
    one_vs_rest: bool = True,
) -> TokenPriorLoss:
    """Bounded non-negative positive-unlabeled risk over tokens, bnPU (Peng et al. 2019)."""
    settings = {"gamma": gamma, "surrogate": surrogate, "one_vs_rest": one_vs_rest}
    return TokenPriorLoss(settings, dict(priors or {}), unlabeled_factor)


def make_expected_entity_ratio_v1(
    ratio: float | None = None,
    margin: float = 0.05,
    margin_below: float | None = None,
    weight: float = 10.0,
    skip_complete: bool = False,
) -> ExpectedEntityRatio | EstimatedRatio[ExpectedEntityRatio]:
    """Hold the expected share of entity tokens near a known ratio (Effland and Collins 2021).
    Without a ratio, it is estimated from the training data.

    Between batches of 16 sentences the true share deviates by .04. Where a batch has few entities,
    a narrow margin below asks for false ones."""
    build = partial(
        ExpectedEntityRatio,
        margin=margin,
        margin_below=margin_below,
        weight=weight,
        skip_complete=skip_complete,
    )
    return EstimatedRatio(build) if ratio is None else build(ratio=ratio)


def make_non_span_sampler_v1(
    rate: float = 0.1, max_width: int = 10, seed: int = 0
) -> NonSpanSampler:
    """In each epoch, ⌈rate · tokens⌉ spans of "O" tokens a document get the extra type NON."""
    return NonSpanSampler(rate=rate, max_width=max_width, seed=seed)


def make_two_step_v1(
    epochs: int = 1,
    share: float | None = 0.025,
    read_from: Path | None = None,
    write_to: Path | None = None,
) -> TwoStep:
    """Explore for some epochs, remove the "O" tokens that look least like "O", start again.
    Without a share, as many are removed as seem to be in unlabeled entities."""
    return TwoStep(epochs=epochs, share=share, read_from=read_from, write_to=write_to)


def make_cross_fitting_v1(
    folds: int = 2,
    iterations: int = 1,
    epochs: int = 5,
    kind: CompletionKind = "soft",
    start: StartingPoint = "outside",
    write_to: Path | None = None,
) -> CompletionSource:
    """Weights from models that did not see the document in training."""
    return CrossFitting(
        folds=folds, iterations=iterations, epochs=epochs, kind=kind, start=start, write_to=write_to
    )


def make_file_completion_v1(path: Path) -> CompletionSource:
    """Weights from a file that cross-fitting wrote."""
    return FileCompletion(Path(path))
