"""The expected-ratio term: tell the model how many entities to expect.

Incomplete annotation says which spans are entities but not how many there are. The term holds the
expected number of entity spans a token, the sum of p(entity) over all candidates divided by the
number of tokens, near a ratio that the user knows. It counts spans rather than tokens by default:
weighting each span by its width lets the many wide candidates, each with next to no probability,
outweigh the few real entities.

With all candidates the term costs as much as training on all of them. `RatioSample` chooses a
fixed number of candidates instead such that the value stays exact and the gradient unbiased.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from ..errors import Errors
from ..ratio_band import RatioBand
from ..types import SamplerInput
from .losses import _check_choice

Unit = Literal["spans", "tokens"]


class RatioTerm(RatioBand):
    """A penalty on the distance between the expected and the known ratio of entities to tokens.

    ratio (float): ρ: entity spans (or entity tokens) a token.
    margin (float): Distance above ρ that costs nothing.
    margin_below (Optional[float]): Distance below ρ that costs nothing; None for the same.
    weight (float): Weight of the term.
    unit (str): "spans" counts each candidate once, "tokens" as often as it has tokens.
    """

    def __init__(
        self,
        *,
        ratio: float,
        margin: float = 0.05,
        margin_below: float | None = None,
        weight: float = 10.0,
        unit: Unit = "spans",
    ) -> None:
        super().__init__(ratio=ratio, margin=margin, margin_below=margin_below, weight=weight)
        _check_choice("unit", unit, ("spans", "tokens"))
        self.unit = unit

    def sizes(self, starts: Tensor, ends: Tensor) -> Tensor:
        """starts (Tensor): First tokens. Shape: (spans,).
        ends (Tensor): One after the last tokens. Shape: (spans,).
        RETURNS (Tensor): How much each span counts if it is an entity. Shape: (spans,).
        """
        return ends - starts if self.unit == "tokens" else torch.ones_like(starts)

    def __call__(
        self,
        entity_probs: Tensor,
        sizes: Tensor,
        *,
        n_tokens: int,
        weights: Tensor | None = None,
        exact: Tensor | None = None,
    ) -> Tensor:
        """Compute the term.

        entity_probs (Tensor): p(entity) of each span, with gradient. Shape: (spans,).
        sizes (Tensor): From `sizes`. Shape: (spans,).
        n_tokens (int): Tokens in the batch.
        weights (Optional[Tensor]): How many candidates each span stands for, if the spans are a
            sample. Shape: (spans,).
        exact (Optional[Tensor]): The sum of probability times size over all candidates. It
            decides value and side of the term, so that a sample only has to give the gradient.
        RETURNS (Tensor): A scalar.
        """
        counts = entity_probs * sizes
        if weights is not None:
            counts = counts * weights
        expected = counts.sum()
        if exact is not None:
            expected = expected + (exact - expected).detach()
        return self.penalty(expected / max(1, n_tokens))


def entity_probabilities(logits: Tensor, o_index: int) -> Tensor:
    """logits (Tensor): Shape: (spans, labels).
    o_index (int): Column of "no entity".
    RETURNS (Tensor): 1 − p(no entity). Shape: (spans,).
    """
    log_probs = torch.log_softmax(logits, dim=1)
    return -torch.expm1(log_probs[:, o_index])


@dataclass(frozen=True)
class RatioSubset:
    """Candidates that stand for all in the gradient of the ratio term.

    rows (Tensor): Candidate rows, ascending. Shape: (spans,).
    weights (Tensor): How many candidates each stands for. Shape: (spans,).
    exact (Tensor): The sum of probability times size over all candidates. A scalar.
    """

    rows: Tensor
    weights: Tensor
    exact: Tensor


class RatioSample:
    """Priority sampling (Duffield et al. 2007) of candidates, in one pass over their scores.

    Each span has the priority q / u, with q the size of its possible gradient, p (1 − p), and u
    uniform in (0, 1). The `size` spans with the greatest priorities are chosen, and each counts
    max(1, t / q) times, where t is the greatest priority that was left out. Sums estimated in this
    way are unbiased whatever is summed.

    size (int): Number of spans to choose.
    term (RatioTerm): Says how much a span counts.
    o_index (int): Column of "no entity".
    generator (torch.Generator): Source of randomness, on the CPU.
    """

    def __init__(
        self, size: int, *, term: RatioTerm, o_index: int, generator: torch.Generator
    ) -> None:
        if size < 1:
            raise ValueError(
                Errors.R103.format(name="size", value=size, wanted="a number of at least 1")
            )
        self.size = size
        self.term = term
        self.o_index = o_index
        self.generator = generator
        self._kept: tuple[Tensor, Tensor, Tensor] | None = None
        self._exact: Tensor | None = None

    def add(self, spans: SamplerInput) -> None:
        """Offer the next candidates; every candidate of the batch once."""
        if spans.log_probs is None:
            raise ValueError(Errors.R104.format(part="ratio term", value="log_probs"))
        probs = -torch.expm1(spans.log_probs[:, self.o_index].double())
        sizes = self.term.sizes(spans.starts, spans.ends)
        exact = (probs * sizes).sum()
        # Spans without a gradient to speak of keep a small chance, or the estimate is biased.
        importance = (probs * (1.0 - probs)).clamp(min=1e-6) * sizes
        numbers = torch.rand(len(probs), generator=self.generator, dtype=torch.float64)
        priority = importance / numbers.to(probs.device).clamp(min=1e-300)
        new = (spans.rows, importance, priority)
        if self._kept is not None and self._exact is not None:
            exact = exact + self._exact
            rows, importance, priority = (
                torch.cat(pair) for pair in zip(self._kept, new, strict=True)
            )
            new = (rows, importance, priority)
        best = torch.topk(new[2], min(self.size + 1, len(new[2]))).indices
        self._kept = (new[0][best], new[1][best], new[2][best])
        self._exact = exact

    def finish(self) -> RatioSubset | None:
        """RETURNS (Optional[RatioSubset]): The chosen candidates; None if there were none."""
        if self._kept is None or self._exact is None:
            return None
        rows, importance, priority = self._kept
        weights = torch.ones_like(importance)
        if len(rows) > self.size:
            left_out = priority[-1]
            rows, importance = rows[: self.size], importance[: self.size]
            weights = (left_out / importance).clamp(min=1.0)
        order = torch.argsort(rows)
        return RatioSubset(rows[order], weights[order], self._exact)
