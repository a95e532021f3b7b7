"""Losses over the chosen spans of a batch, as pure functions of tensors."""

import math
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from ..errors import Errors
from ..types import LossInput

Normalization = Literal["document", "mean", "positives", "sum"]
NRCESVariant = Literal[
    "full",
    "without_sigmoid",
    "without_separate_training",
    "without_negative_indicator",
    "without_positive_indicator",
]


def _check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(Errors.R105.format(name=name, value=value, choices=", ".join(choices)))


def normalize(span_losses: Tensor, batch: LossInput, normalization: Normalization) -> Tensor:
    """Bring the losses of the spans into one number.

    span_losses (Tensor): One loss a span. Shape: (spans,).
    batch (LossInput): The spans.
    normalization (str): "document" divides the sum by the number of documents, "mean" by the
        number of spans, "positives" by the number of positives, "sum" by nothing. None changes
        the balance of positives and negatives within a batch. What differs is the size of the
        gradient: with all candidates as negatives, "mean" makes it so small that plain descent
        stands still. Adam evens most of that out, but not the weight against other terms, or of
        batches against each other.
    RETURNS (Tensor): A scalar; 0 for no spans.
    """
    if batch.weights is not None:
        span_losses = span_losses * batch.weights
    total = span_losses.sum()
    if normalization == "document":
        return total / max(1, batch.n_docs)
    if normalization == "positives":
        return total / max(1, int((batch.targets != batch.o_index).sum()))
    if normalization == "mean":
        if batch.weights is None:
            return total / max(1, len(span_losses))
        return total / batch.weights.sum().clamp(min=torch.finfo(total.dtype).tiny)
    return total


class CrossEntropy:
    """−log p(target) of each chosen span.

    normalization (str): See `normalize`.
    """

    needs_uniform_negatives = False
    needs_confidence = False

    def __init__(self, *, normalization: Normalization = "document") -> None:
        _check_choice("normalization", normalization, ("document", "mean", "positives", "sum"))
        self.normalization = normalization

    def __call__(self, batch: LossInput) -> Tensor:
        losses = F.cross_entropy(batch.logits, batch.targets, reduction="none")
        return normalize(losses, batch, self.normalization)


class NRCES:
    r"""Noise-robust cross entropy with a sigmoid term (Kang et al. 2022, eqs. 6–9):

    .. math::
        L_{ce} = -\log p_y, \quad L_{cs} = \beta L_{ce} + (1 - \beta)(1 - \sigma(o_y)), \quad
        \beta = \exp(-e / w)

    Positives have the loss :math:`L_{ce}`, negatives :math:`L_{cs}`. The sigmoid term is bounded:
    a negative that the model takes for an entity has hardly any gradient late in training.
    Equation 6 of the paper lacks the minus sign without which it would teach the opposite.

    w (float): Epochs until the share of the cross entropy is down to 1/e.
    variant (str): "full", or a row of the paper's table 5: "without_sigmoid" (cross entropy for
        all spans), "without_separate_training" (L_cs for all), "without_negative_indicator"
        (L_ce for positives plus L_cs for all), "without_positive_indicator" (L_ce for all plus
        L_cs for negatives). Its row "w/o random sampling" is a matter of the sampler.
    normalization (str): See `normalize`.
    """

    needs_uniform_negatives = False
    needs_confidence = False

    def __init__(
        self,
        *,
        w: float = 5.0,
        variant: NRCESVariant = "full",
        normalization: Normalization = "document",
    ) -> None:
        if not w > 0:
            raise ValueError(Errors.R103.format(name="w", value=w, wanted="a number above 0"))
        _check_choice("variant", variant, tuple(_NRCES_TERMS))
        _check_choice("normalization", normalization, ("document", "mean", "positives", "sum"))
        self.w = w
        self.variant = variant
        self.normalization = normalization

    def beta(self, epoch: int) -> float:
        """RETURNS (float): The share of the cross entropy after some epochs."""
        return math.exp(-epoch / self.w)

    def __call__(self, batch: LossInput) -> Tensor:
        cross_entropy = F.cross_entropy(batch.logits, batch.targets, reduction="none")
        target_scores = batch.logits.gather(1, batch.targets.unsqueeze(1)).squeeze(1)
        beta = self.beta(batch.epoch)
        mixed = beta * cross_entropy + (1.0 - beta) * torch.sigmoid(-target_scores)
        positive = batch.targets != batch.o_index
        (ce_positive, cs_positive), (ce_negative, cs_negative) = _NRCES_TERMS[self.variant]
        losses = torch.where(
            positive,
            ce_positive * cross_entropy + cs_positive * mixed,
            ce_negative * cross_entropy + cs_negative * mixed,
        )
        return normalize(losses, batch, self.normalization)


# How often L_ce and L_cs count, for positives and for negatives.
_NRCES_TERMS: dict[str, tuple[tuple[float, float], tuple[float, float]]] = {
    "full": ((1.0, 0.0), (0.0, 1.0)),
    "without_sigmoid": ((1.0, 0.0), (1.0, 0.0)),
    "without_separate_training": ((0.0, 1.0), (0.0, 1.0)),
    "without_negative_indicator": ((1.0, 1.0), (0.0, 1.0)),
    "without_positive_indicator": ((1.0, 0.0), (1.0, 1.0)),
}
