"""Which parts of the span component make sense together."""

import warnings
from typing import Any

from ..errors import Errors, Warnings
from ..span.samplers import UniformSampler
from ..span.segmentation_objective import SegmentationLikelihood
from ..types import NegativeSampler, SpanLoss
from .confidence import ConfidenceSource
from .registered import PriorLoss, Retrieval


def check_combination(
    *,
    loss: SpanLoss | PriorLoss | SegmentationLikelihood,
    sampler: NegativeSampler,
    retrieval: Retrieval | None,
    confidence: ConfidenceSource | None,
    threshold: float | None,
    max_epochs: int,
) -> None:
    """Raise an error that says why settings don't go together. The arguments are those of
    RobustSpanNER."""
    if threshold is not None and not 0 <= threshold <= 1:
        raise ValueError(
            Errors.R103.format(name="threshold", value=threshold, wanted="null, or between 0 and 1")
        )
    if max_epochs < 1:
        raise ValueError(
            Errors.R103.format(name="max_epochs", value=max_epochs, wanted="at least 1")
        )
    kind: Any = loss.kind if isinstance(loss, PriorLoss) else loss
    name = kind.__name__ if isinstance(kind, type) else type(kind).__name__
    if kind.needs_uniform_negatives and not sampler.is_uniform:
        raise ValueError(Errors.R111.format(loss=name, sampler=type(sampler).__name__))
    if kind.needs_confidence and confidence is None:
        raise ValueError(Errors.R113.format(loss=name))
    if isinstance(kind, SegmentationLikelihood):
        if retrieval is not None:
            raise ValueError(Errors.R140.format(loss=name))
    elif isinstance(sampler, UniformSampler) and not sampler.rate:
        warnings.warn(Warnings.W102.format(loss=name), stacklevel=3)
