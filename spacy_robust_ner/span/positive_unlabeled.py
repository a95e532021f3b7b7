"""Positive-unlabeled risks: the negatives' share of the loss is estimated from unlabeled spans,
less what the class priors say is hidden among them.

Priors are shares of the candidate spans, not of the entities. The negatives that the sampler
chose stand for all unlabeled candidates, so they must be a fair sample of them.
"""

from collections.abc import Sequence
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from ..errors import Errors
from ..types import LossInput
from .losses import _check_choice

Surrogate = Literal["mae", "ce"]


def _check_priors(priors: Sequence[float], o_index: int, n_labels: int) -> None:
    if len(priors) != n_labels:
        raise ValueError(Errors.R106.format(n_priors=len(priors), n_labels=n_labels))
    entity_priors = [prior for label, prior in enumerate(priors) if label != o_index]
    if min(entity_priors, default=0.0) < 0 or sum(entity_priors) >= 1:
        raise ValueError(Errors.R107.format(priors=entity_priors))


def _weighted_mean(values: Tensor, weights: Tensor) -> Tensor:
    """RETURNS (Tensor): Means over the spans; 0 where all weights are. Shape: (...)."""
    return (values * weights).sum(0) / weights.sum(0).clamp(min=torch.finfo(values.dtype).tiny)


def _surrogate_losses(logits: Tensor, surrogate: Surrogate) -> Tensor:
    """RETURNS (Tensor): The loss of each span for each label as its target: −log p, or the mean
    absolute error between p and the one-hot target, 2 (1 − p) / labels. Shape: (spans, labels).
    """
    if surrogate == "ce":
        return -F.log_softmax(logits, dim=1)
    return 2.0 * (1.0 - F.softmax(logits, dim=1)) / logits.shape[1]


class BoundedNonNegativePURisk:
    r"""Peng et al. (2019), on the probabilities of one classifier for all types:

    .. math::
        R = \sum_k \gamma \pi_k E_k[\ell(p_k, 1)] +
            \max(0, E_U[\ell(p_k, 0)] - \pi_k E_k[\ell(p_k, 0)])

    with the bounded surrogate :math:`\ell(p, y) = |p - y|` ("mae"), or log loss ("ce").

    priors (Sequence[float]): π, one number a label; the entry of "no entity" is not read.
    gamma (float): Weight of the positives, which the small priors would drown.
    surrogate (str): "mae" or "ce".
    one_vs_rest (bool): One such risk for each type, as in the paper. Otherwise the multi-class
        form of Zhou et al. (2022), with a single maximum.
    positives_are_unlabeled_too (bool): Average U over all chosen spans. That is right when the
        labelled spans come from the same text as the others; without it U are the spans that do
        not have the label.
    """

    needs_uniform_negatives = True
    needs_confidence = False

    def __init__(
        self,
        *,
        priors: Sequence[float],
        gamma: float = 1.0,
        surrogate: Surrogate = "mae",
        one_vs_rest: bool = True,
        positives_are_unlabeled_too: bool = True,
    ) -> None:
        _check_choice("surrogate", surrogate, ("mae", "ce"))
        self.priors = tuple(priors)
        self.gamma = gamma
        self.surrogate = surrogate
        self.one_vs_rest = one_vs_rest
        self.positives_are_unlabeled_too = positives_are_unlabeled_too

    def __call__(self, batch: LossInput) -> Tensor:
        n_labels = batch.logits.shape[1]
        _check_priors(self.priors, batch.o_index, n_labels)
        classes = [label for label in range(n_labels) if label != batch.o_index]
        priors = batch.logits.new_tensor([self.priors[label] for label in classes])
        in_class = F.one_hot(batch.targets, n_labels)[:, classes].to(batch.logits.dtype)
        weights = _weights(batch)
        in_class = in_class * weights.unsqueeze(1)
        if self.one_vs_rest:
            as_positive, as_negative = self._binary_losses(batch.logits)
            as_positive, as_negative = as_positive[:, classes], as_negative[:, classes]
        else:
            losses = _surrogate_losses(batch.logits, self.surrogate)
            as_positive = losses[:, classes]
            as_negative = losses[:, [batch.o_index]].expand_as(as_positive)
        unlabeled = weights.unsqueeze(1).expand_as(in_class)
        if not self.positives_are_unlabeled_too:
            labelled = in_class if self.one_vs_rest else in_class.sum(1, keepdim=True)
            unlabeled = unlabeled * (labelled == 0)
        positive_risk = (priors * _weighted_mean(as_positive, in_class)).sum()
        hidden = priors * _weighted_mean(as_negative, in_class)
        negative = _weighted_mean(as_negative, unlabeled)
        if self.one_vs_rest:
            negative_risk = (negative - hidden).clamp(min=0).sum()
        else:
            # Every class has the same loss for "no entity": one average stands for all.
            negative_risk = (negative[:1].sum() - hidden.sum()).clamp(min=0)
        return self.gamma * positive_risk + negative_risk

    def _binary_losses(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """RETURNS (Tuple[Tensor, Tensor]): The loss of each span for and against each label.
        Shapes: (spans, labels).
        """
        if self.surrogate == "mae":
            probs = F.softmax(logits, dim=1)
            return 1.0 - probs, probs
        own = torch.eye(logits.shape[1], dtype=torch.bool, device=logits.device)
        rest = logits.unsqueeze(1).masked_fill(own, -torch.inf).logsumexp(2)
        # −log p and −log(1 − p), with the odds of p against all other labels.
        return F.softplus(rest - logits), F.softplus(logits - rest)


class ConfidencePURisk:
    r"""Conf-MPU of Zhou et al. (2022): where a first stage is confident (λ > η) that a span is an
    entity, its part of the unlabeled risk is taken from the labelled spans instead.

    .. math::
        R = \gamma \sum_k \pi_k E_k[\ell_k + 1(\lambda > \eta) \ell_0 / \lambda - \ell_0]
            + E_U[1(\lambda \le \eta) \ell_0]

    priors (Sequence[float]): π, one number a label; the entry of "no entity" is not read.
    threshold (float): η.
    gamma (float): Weight of the positives.
    surrogate (str): "mae" or "ce".
    clamp_each (bool): Hold the bracket at 0 or above for each span, which keeps the cross entropy
        bounded from below; otherwise only the sum over all positives.
    positives_are_unlabeled_too (bool): Average U over all chosen spans.
    """

    needs_uniform_negatives = True
    needs_confidence = True

    def __init__(
        self,
        *,
        priors: Sequence[float],
        threshold: float = 0.5,
        gamma: float = 1.0,
        surrogate: Surrogate = "mae",
        clamp_each: bool = True,
        positives_are_unlabeled_too: bool = True,
    ) -> None:
        _check_choice("surrogate", surrogate, ("mae", "ce"))
        if not 0 < threshold < 1:
            raise ValueError(
                Errors.R103.format(name="threshold", value=threshold, wanted="0 < threshold < 1")
            )
        self.priors = tuple(priors)
        self.threshold = threshold
        self.gamma = gamma
        self.surrogate = surrogate
        self.clamp_each = clamp_each
        self.positives_are_unlabeled_too = positives_are_unlabeled_too

    def __call__(self, batch: LossInput) -> Tensor:
        if batch.confidence is None:
            raise ValueError(Errors.R104.format(part="Conf-MPU loss", value="confidence"))
        n_labels = batch.logits.shape[1]
        _check_priors(self.priors, batch.o_index, n_labels)
        confidence = batch.confidence.to(batch.logits.dtype)
        weights = _weights(batch)
        losses = _surrogate_losses(batch.logits, self.surrogate)
        outside = losses[:, batch.o_index]
        own = losses.gather(1, batch.targets.unsqueeze(1)).squeeze(1)
        sure = confidence > self.threshold
        inverse = torch.where(sure, 1.0 / confidence.clamp(min=self.threshold), 0.0)
        bracket = own + (inverse - 1.0) * outside
        if self.clamp_each:
            bracket = bracket.clamp(min=0)
        positive = batch.targets != batch.o_index
        in_class = F.one_hot(batch.targets, n_labels).to(weights.dtype) * weights.unsqueeze(1)
        in_class = in_class * positive.unsqueeze(1)
        class_risks = _weighted_mean(bracket.unsqueeze(1), in_class)
        positive_risk = (class_risks * class_risks.new_tensor(self.priors)).sum()
        if not self.clamp_each:
            positive_risk = positive_risk.clamp(min=0)
        unlabeled = weights if self.positives_are_unlabeled_too else weights * ~positive
        return self.gamma * positive_risk + _weighted_mean(outside * ~sure, unlabeled)


def _weights(batch: LossInput) -> Tensor:
    if batch.weights is None:
        return torch.ones_like(batch.logits[:, 0])
    return batch.weights.to(batch.logits.dtype)
