"""Supervised contrastive learning on span vectors (Si et al. 2022, eqs. 7–10)."""

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from ..errors import Errors
from .losses import _check_choice

Denominator = Literal["all", "other_labels"]


class ContrastiveTerm:
    r"""Pulls the vectors of spans with the same label together and the others apart:

    .. math::
        \frac{1}{N} \sum_i \frac{-1}{N_{y_i} - 1} \sum_{j \ne i, y_j = y_i}
        \log \frac{\exp(\cos(r_i, r_j) / \tau)}{\sum_{m \in D_i} \exp(\cos(r_i, r_m) / \tau)}

    "No entity" is a label like the others. A label with one span contributes 0. The total loss is
    (1 − weight) · main + weight · term, see `combine`.

    weight (float): λ.
    temperature (float): τ.
    denominator (str): D_i are all spans but the i-th ("all"), or only those with another label
        ("other_labels", as printed in the paper; not bounded from below).
    max_outside (int): At most that many "no entity" spans take part, drawn at random, which bounds
        the similarity matrix.
    seed (int): Seed of that draw.
    """

    def __init__(
        self,
        *,
        weight: float = 0.1,
        temperature: float = 0.1,
        denominator: Denominator = "all",
        max_outside: int = 512,
        seed: int = 0,
    ) -> None:
        _check_choice("denominator", denominator, ("all", "other_labels"))
        if not 0 <= weight <= 1:
            raise ValueError(
                Errors.R103.format(name="weight", value=weight, wanted="between 0 and 1")
            )
        if not temperature > 0:
            raise ValueError(
                Errors.R103.format(name="temperature", value=temperature, wanted="above 0")
            )
        if max_outside < 0:
            raise ValueError(
                Errors.R103.format(name="max_outside", value=max_outside, wanted="at least 0")
            )
        self.weight = weight
        self.temperature = temperature
        self.denominator = denominator
        self.max_outside = max_outside
        self.generator = torch.Generator().manual_seed(seed)

    def participants(self, labels: Tensor, o_index: int) -> Tensor:
        """labels (Tensor): Shape: (spans,).
        o_index (int): Column of "no entity".
        RETURNS (Tensor): Indices of the spans that take part, ascending. Shape: (participants,).
        """
        outside = torch.nonzero(labels == o_index).squeeze(1)
        if len(outside) <= self.max_outside:
            return torch.arange(len(labels), device=labels.device)
        drawn = torch.randperm(len(outside), generator=self.generator)[: self.max_outside]
        entities = torch.nonzero(labels != o_index).squeeze(1)
        return torch.cat((entities, outside[drawn.to(labels.device)])).sort().values

    def __call__(self, vectors: Tensor, labels: Tensor, *, o_index: int = 0) -> Tensor:
        """vectors (Tensor): Span vectors with gradient. Shape: (spans, hidden).
        labels (Tensor): Label columns. Shape: (spans,).
        o_index (int): Column of "no entity".
        RETURNS (Tensor): A scalar.
        """
        chosen = self.participants(labels, o_index)
        return supervised_contrastive(
            vectors[chosen],
            labels[chosen],
            temperature=self.temperature,
            denominator=self.denominator,
        )

    def combine(self, main: Tensor, term: Tensor) -> Tensor:
        """RETURNS (Tensor): (1 − weight) · main + weight · term."""
        return (1.0 - self.weight) * main + self.weight * term


def supervised_contrastive(
    vectors: Tensor, labels: Tensor, *, temperature: float, denominator: Denominator
) -> Tensor:
    """The term itself; see `ContrastiveTerm`.

    vectors (Tensor): Shape: (spans, hidden).
    labels (Tensor): Shape: (spans,).
    temperature (float): τ.
    denominator (str): "all" or "other_labels".
    RETURNS (Tensor): A scalar; 0 if no label has two spans.
    """
    n_spans = len(labels)
    unit = F.normalize(vectors, dim=1)
    similarity = unit @ unit.t() / temperature
    itself = torch.eye(n_spans, dtype=torch.bool, device=vectors.device)
    same = labels.unsqueeze(0) == labels.unsqueeze(1)
    compared = ~itself if denominator == "all" else ~same
    n_partners = same.sum(1) - 1
    # A row without anything to compare with would be −inf, and its gradient not a number.
    counts = (n_partners > 0) & compared.any(1)
    similarity, compared, same = similarity[counts], compared[counts], same[counts]
    n_partners = n_partners[counts]
    log_sum = similarity.masked_fill(~compared, -torch.inf).logsumexp(1)
    attraction = similarity.masked_fill(~(same & ~itself[counts]), 0.0).sum(1) / n_partners
    return (log_sum - attraction).sum() / max(1, n_spans)
