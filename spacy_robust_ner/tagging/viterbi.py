"""The best tag sequence of each document."""

import torch
from torch import Tensor

from .chain import Chain, work_dtype
from .tag_set import OUTSIDE_TAG, TagSet


def scheme_chain(tag_set: TagSet, device: torch.device | None = None) -> Chain:
    """A chain without scores of its own, for a model without CRF: what remains is the scheme, so
    that `viterbi` finds the most probable tags that are in order.

    tag_set (TagSet): The tags.
    device (Optional[torch.device]): Where the tensors shall be.
    RETURNS (Chain): All scores 0.
    """
    n_tags = len(tag_set)
    return Chain(
        torch.zeros(n_tags, n_tags, device=device),
        torch.zeros(n_tags, device=device),
        torch.zeros(n_tags, device=device),
        torch.from_numpy(tag_set.allowed_transitions).to(device),
        torch.from_numpy(tag_set.allowed_start).to(device),
        torch.from_numpy(tag_set.allowed_end).to(device),
    )


@torch.no_grad()
def viterbi(emissions: Tensor, lengths: Tensor, chain: Chain) -> tuple[Tensor, Tensor]:
    """Find the allowed tag sequence with the greatest score; of equal ones that which has the
    lower tag numbers, compared from the last token on.

    emissions (Tensor): Scores, -inf for what is forbidden. Shape: (documents, longest, tags).
    lengths (Tensor): Tokens a document. Shape: (documents,).
    chain (Chain): The other scores.
    RETURNS (Tuple[Tensor, Tensor]): The tags, "O" in the padding, and the scores of the
        sequences in working precision, -inf without any sequence and 0 without tokens.
        Shapes: (documents, longest), (documents,).
    """
    n_docs, longest, n_tags = emissions.shape
    emissions = emissions.to(work_dtype(emissions.device)).transpose(0, 1).contiguous()
    tags = torch.full((longest, n_docs), OUTSIDE_TAG, dtype=torch.long)
    if not longest:
        return tags.t().to(lengths.device), emissions.new_zeros(n_docs)
    transitions = _forbid(chain.transitions, chain.allowed_transitions, emissions.dtype)
    into = transitions.t().contiguous()
    best = torch.empty_like(emissions)
    pointers = torch.empty(longest, n_docs, n_tags, dtype=torch.long, device=emissions.device)
    best[0] = emissions[0] + _forbid(chain.start, chain.allowed_start, emissions.dtype)
    for i in range(1, longest):
        found = torch.max(best[i - 1].unsqueeze(1) + into, dim=2)
        torch.add(found.values, emissions[i], out=best[i])
        pointers[i] = found.indices
    docs = torch.arange(n_docs, device=lengths.device)
    last = (lengths - 1).clamp(min=0)
    ended = best[last, docs] + _forbid(chain.end, chain.allowed_end, emissions.dtype)
    scores, last_tags = ended.max(1)

    # One transfer, then a walk over small arrays that costs next to nothing.
    back, docs_walk, last_walk = pointers.cpu().numpy(), docs.cpu().numpy(), last.cpu().numpy()
    result, current = tags.numpy(), last_tags.cpu().numpy()
    last_tag = current.copy()
    for i in range(longest - 1, -1, -1):
        if i < longest - 1:
            current = back[i + 1, docs_walk, current]
        current = current * (last_walk != i) + last_tag * (last_walk == i)
        result[i] = current
    padded = tags.t().to(lengths.device)
    positions = torch.arange(longest, device=lengths.device)
    padded = padded.masked_fill(positions >= lengths.unsqueeze(1), OUTSIDE_TAG)
    return padded, torch.where(lengths > 0, scores, 0.0)


def _forbid(scores: Tensor, allowed: Tensor, dtype: torch.dtype) -> Tensor:
    return scores.detach().to(dtype).masked_fill(~allowed, -torch.inf)
