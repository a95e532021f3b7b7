"""Losses over the tokens of a batch, as pure functions of tensors."""

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from ..errors import Errors
from .chain import work_dtype
from .crf import CRF
from .padding import pad
from .tag_set import MISSING_TAG, OUTSIDE_TAG, TagSet
from .targets import allowed_tags, known_tags
from .types import TokenBatch

Normalization = Literal["document", "token", "sum"]
Removal = Literal["emissions_and_transitions", "emissions", "marginalize"]

_NORMALIZATIONS = ("document", "token", "sum")
_REMOVALS = ("emissions_and_transitions", "emissions", "marginalize")


def check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    """Raise an error for a setting that is none of the choices."""
    if value not in choices:
        raise ValueError(Errors.R105.format(name=name, value=value, choices=", ".join(choices)))


def required(part: str, name: str, value: Tensor | None) -> Tensor:
    """RETURNS (Tensor): The value; None is an error."""
    if value is None:
        raise ValueError(Errors.R104.format(part=part, value=name))
    return value


def required_crf(part: str, crf: CRF | None) -> CRF:
    """RETURNS (CRF): The CRF; None is an error."""
    if crf is None:
        raise ValueError(Errors.R104.format(part=part, value="crf"))
    return crf


def normalize(total: Tensor, batch: TokenBatch, n_tokens: int, how: Normalization) -> Tensor:
    """Bring a sum of losses to a common scale.

    total (Tensor): The sum over the batch.
    batch (TokenBatch): The batch.
    n_tokens (int): Tokens that the sum is about.
    how (str): "document" divides by the number of documents, "token" by the number of tokens,
        "sum" by nothing.
    RETURNS (Tensor): A scalar in the precision of the emissions.
    """
    if how == "document":
        total = total / max(1, len(batch.lengths))
    elif how == "token":
        total = total / max(1, n_tokens)
    return total.to(batch.emissions.dtype)


class TokenCrossEntropy:
    """−log p(tag) of each token for itself. Missing and removed tokens count nothing.

    unknown_outside (bool): An "O" of an incomplete document counts nothing either.
    normalization (str): See `normalize`; "token" divides by the tokens that count.
    """

    needs_crf = False

    def __init__(
        self, *, unknown_outside: bool = False, normalization: Normalization = "token"
    ) -> None:
        check_choice("normalization", normalization, _NORMALIZATIONS)
        self.unknown_outside = unknown_outside
        self.normalization = normalization

    def __call__(self, batch: TokenBatch, *, tag_set: TagSet, crf: CRF | None = None) -> Tensor:
        tags = known_tags(batch, unknown_outside=self.unknown_outside, drop_removed=True)
        total = F.cross_entropy(batch.emissions, tags, ignore_index=MISSING_TAG, reduction="sum")
        return normalize(total, batch, int((tags != MISSING_TAG).sum()), self.normalization)


class CRFLikelihood:
    """−log p(tags) of each document. Missing tokens are summed out. Removed tokens are
    disregarded, in one of three ways:

    - "emissions_and_transitions": their emissions and the transitions into them score 0, in the
      annotated sequence and in all others (Algorithm 1's eq. 7, as far as it is legible);
    - "emissions": their emissions alone score 0;
    - "marginalize": they may have any tag, as if they were missing.

    In the first two their tag stays "O", which the transition to the next token sees. What the
    scheme forbids stays forbidden in all three.

    removal (str): What becomes of removed tokens.
    normalization (str): See `normalize`.
    """

    needs_crf = True

    def __init__(
        self,
        *,
        removal: Removal = "emissions_and_transitions",
        normalization: Normalization = "document",
    ) -> None:
        check_choice("removal", removal, _REMOVALS)
        check_choice("normalization", normalization, _NORMALIZATIONS)
        self.removal = removal
        self.normalization = normalization

    def __call__(self, batch: TokenBatch, *, tag_set: TagSet, crf: CRF | None = None) -> Tensor:
        crf = required_crf("CRF likelihood", crf)
        drop = self.removal == "marginalize"
        known = known_tags(batch, unknown_outside=False, drop_removed=drop)
        removed = None if drop else batch.removed
        emissions, skips = batch.emissions, None
        if removed is not None:
            emissions = emissions.masked_fill(removed.unsqueeze(1), 0.0)
            if self.removal == "emissions_and_transitions":
                skips = pad(removed, batch.lengths)
        if bool((known == MISSING_TAG).any()):
            allowed = allowed_tags(known, batch.lengths, tag_set)
            losses = _partial_losses(emissions, batch.lengths, crf, allowed, skip_incoming=skips)
        else:
            padded = _padded(emissions, batch.lengths)
            tags = pad(known, batch.lengths, value=OUTSIDE_TAG)
            scores = crf.score(padded, batch.lengths, tags, skip_incoming=skips)
            _check_feasible(scores, crf)
            partitions = crf.log_partition(padded, batch.lengths, skip_incoming=skips)
            losses = partitions - scores
        return normalize(losses.sum(), batch, len(batch.tags), self.normalization)


class PartialCRF:
    """−log of the probability of all tag sequences that agree with what is known (Tsuboi et al.
    2008, Yang et al. 2018). Nothing is known about missing and removed tokens.

    unknown_outside (bool): Nor about an "O" of an incomplete document.
    normalization (str): See `normalize`.
    """

    needs_crf = True

    def __init__(
        self, *, unknown_outside: bool = True, normalization: Normalization = "document"
    ) -> None:
        check_choice("normalization", normalization, _NORMALIZATIONS)
        self.unknown_outside = unknown_outside
        self.normalization = normalization

    def allowed(self, batch: TokenBatch, tag_set: TagSet) -> Tensor:
        """RETURNS (Tensor): The tags that agree with what is known. Shape: (tokens, tags)."""
        known = known_tags(batch, unknown_outside=self.unknown_outside, drop_removed=True)
        return allowed_tags(known, batch.lengths, tag_set)

    def __call__(self, batch: TokenBatch, *, tag_set: TagSet, crf: CRF | None = None) -> Tensor:
        crf = required_crf("partial CRF", crf)
        allowed = self.allowed(batch, tag_set)
        losses = _partial_losses(batch.emissions, batch.lengths, crf, allowed)
        return normalize(losses.sum(), batch, len(batch.tags), self.normalization)


class WeightedPartialCRF(PartialCRF):
    """The partial CRF with weights q for the sequences (Jie et al. 2019), the product of one
    weight a token: −log Σ q(tags) p(tags) over those that agree with what is known. See
    `targets.hard_completion` and `targets.soft_completion` for where q comes from. The weights of
    a token with a known tag are not read.
    """

    def __call__(self, batch: TokenBatch, *, tag_set: TagSet, crf: CRF | None = None) -> Tensor:
        crf = required_crf("weighted partial CRF", crf)
        log_weights = required("weighted partial CRF", "log_weights", batch.log_weights)
        allowed = self.allowed(batch, tag_set)
        known = known_tags(batch, unknown_outside=self.unknown_outside, drop_removed=True)
        log_weights = log_weights.masked_fill((known != MISSING_TAG).unsqueeze(1), 0.0)
        losses = _partial_losses(
            batch.emissions, batch.lengths, crf, allowed, log_weights=log_weights
        )
        return normalize(losses.sum(), batch, len(batch.tags), self.normalization)


class FuzzyCRF:
    """−log of the probability of all tag sequences within given tag sets (Shang et al. 2018).
    Complete documents are taken by their annotation instead.

    normalization (str): See `normalize`.
    """

    needs_crf = True

    def __init__(self, *, normalization: Normalization = "document") -> None:
        check_choice("normalization", normalization, _NORMALIZATIONS)
        self.normalization = normalization

    def __call__(self, batch: TokenBatch, *, tag_set: TagSet, crf: CRF | None = None) -> Tensor:
        crf = required_crf("fuzzy CRF", crf)
        allowed = required("fuzzy CRF", "allowed", batch.allowed)
        if batch.complete is not None:
            annotated = allowed_tags(batch.tags, batch.lengths, tag_set)
            vouched = batch.complete.repeat_interleave(batch.lengths).unsqueeze(1)
            allowed = torch.where(vouched, annotated, allowed)
        losses = _partial_losses(batch.emissions, batch.lengths, crf, allowed)
        return normalize(losses.sum(), batch, len(batch.tags), self.normalization)


def _padded(emissions: Tensor, lengths: Tensor) -> Tensor:
    # The difference of two large sums needs the digits.
    return pad(emissions.to(work_dtype(emissions.device)), lengths)


def _partial_losses(
    emissions: Tensor,
    lengths: Tensor,
    crf: CRF,
    allowed: Tensor,
    *,
    log_weights: Tensor | None = None,
    skip_incoming: Tensor | None = None,
) -> Tensor:
    """The log-sum over all sequences less that over those which agree. Both sums go through one
    loop, as a batch of twice the size.

    emissions (Tensor): Shape: (tokens, tags).
    lengths (Tensor): Shape: (documents,).
    crf (CRF): The CRF.
    allowed (Tensor): Shape: (tokens, tags).
    log_weights (Optional[Tensor]): Shape: (tokens, tags).
    skip_incoming (Optional[Tensor]): Shape: (documents, longest).
    RETURNS (Tensor): Shape: (documents,).
    """
    everything = emissions.to(work_dtype(emissions.device))
    agreeing = everything if log_weights is None else everything + log_weights
    agreeing = agreeing.masked_fill(~allowed, -torch.inf)
    doubled = lengths.repeat(2)
    padded = pad(torch.cat((everything, agreeing)), doubled)
    skips = None if skip_incoming is None else skip_incoming.repeat(2, 1)
    partitions, scores = crf.log_partition(padded, doubled, skip_incoming=skips).chunk(2)
    _check_feasible(scores, crf)
    return partitions - scores


def _check_feasible(scores: Tensor, crf: CRF) -> None:
    impossible = (scores == -torch.inf).nonzero().flatten().tolist()
    if impossible:
        raise ValueError(Errors.R153.format(scheme=crf.tag_set.scheme, doc=impossible[0]))
