"""Choosing the negatives of a batch: the part that all samplers have in common.

Candidates arrive in chunks, and of each only what may still be chosen is kept, so that memory
depends on the number of negatives and not on the number of candidates. Labelled spans and spans
that touch a missing token are left out here, whatever the sampler says.
"""

import torch
from torch import Tensor

from ..types import NegativeSample, NegativeSampler, SamplerContext, SamplerInput


def segment_top_k(keys: Tensor, segments: Tensor, k: Tensor) -> Tensor:
    """The greatest keys of each segment, without a loop over the segments.

    keys (Tensor): Shape: (items,).
    segments (Tensor): The segment of each item, in any order. Shape: (items,).
    k (Tensor): How many to keep of each segment. Shape: (segments,).
    RETURNS (Tensor): Indices of the chosen items, ascending. Of equal keys the first item wins.
        Shape: (chosen,).
    """
    order = torch.argsort(keys, descending=True, stable=True)
    order = order[torch.argsort(segments[order], stable=True)]
    sizes = torch.bincount(segments, minlength=len(k))
    first = torch.cumsum(sizes, 0) - sizes
    sorted_segments = segments[order]
    rank = torch.arange(len(keys), device=keys.device) - first[sorted_segments]
    return order[rank < k[sorted_segments]].sort().values


class NegativeSelection:
    """Collects the negatives of one batch.

    sampler (NegativeSampler): Ranks the candidates.
    context (SamplerContext): What the sampler may know about the batch.
    use_all_true_negatives (bool): Take every span that is vouched for as a negative, beside those
        that are sampled; otherwise such spans are sampled like any other.
    """

    def __init__(
        self,
        sampler: NegativeSampler,
        context: SamplerContext,
        *,
        use_all_true_negatives: bool = False,
    ) -> None:
        self.sampler = sampler
        self.context = context
        self.use_all_true_negatives = use_all_true_negatives
        candidates = context.doc_candidates
        most = candidates if sampler.per_document else candidates.sum().reshape(1)
        self._most_chosen = sampler.quota(most, context)
        empty = torch.empty(0, dtype=torch.long, device=most.device)
        self._pool_sizes = torch.zeros_like(most)
        # Rows, segments, whether vouched for, keys.
        self._kept = (empty, empty, empty.bool(), empty.double())
        self._certain: list[Tensor] = []

    def add(self, spans: SamplerInput) -> None:
        """Offer the next candidates; every candidate of the batch once, in row order."""
        pool = ~spans.is_positive & ~spans.is_unknown
        if self.use_all_true_negatives:
            self._certain.append(spans.rows[spans.is_true_negative & pool])
            pool = pool & ~spans.is_true_negative
        keys = self.sampler.keys(spans, self.context).double()
        segments = spans.doc_index if self.sampler.per_document else spans.doc_index * 0
        self._pool_sizes += torch.bincount(segments[pool], minlength=len(self._pool_sizes))
        offered = pool & (keys > -torch.inf)
        columns = (spans.rows, segments, spans.is_true_negative, keys)
        kept = [
            torch.cat((old, new[offered])) for old, new in zip(self._kept, columns, strict=True)
        ]
        if self._most_chosen is not None:
            chosen = segment_top_k(kept[3], kept[1], self._most_chosen)
            kept = [column[chosen] for column in kept]
        self._kept = (kept[0], kept[1], kept[2], kept[3])

    def finish(self) -> NegativeSample:
        """RETURNS (NegativeSample): The negatives of the batch."""
        rows, segments, vouched, keys = self._kept
        quota = self.sampler.quota(self._pool_sizes, self.context)
        if quota is not None:
            chosen = segment_top_k(keys, segments, quota)
            rows, segments, vouched = rows[chosen], segments[chosen], vouched[chosen]
        weights = torch.ones(len(rows), dtype=torch.float, device=rows.device)
        if self.sampler.is_uniform:
            chosen_sizes = torch.bincount(segments, minlength=len(self._pool_sizes))
            weights = (self._pool_sizes / chosen_sizes.clamp(min=1))[segments]
        if self._certain:
            certain = torch.cat(self._certain)
            order = torch.argsort(torch.cat((rows, certain)))
            rows = torch.cat((rows, certain))[order]
            vouched = torch.cat((vouched, torch.ones_like(certain, dtype=torch.bool)))[order]
            weights = torch.cat((weights, torch.ones_like(certain, dtype=weights.dtype)))[order]
        return NegativeSample(rows=rows, is_true_negative=vouched, weights=weights)
