"""Probabilities of whole entities."""

import torch
from torch import Tensor

from .chain import Chain, exp_allowed, run_messages, work_dtype
from .padding import pad
from .tag_set import TagSet


@torch.no_grad()
def segment_log_probs(
    emissions: Tensor,
    lengths: Tensor,
    chain: Chain,
    tag_set: TagSet,
    *,
    docs: Tensor,
    starts: Tensor,
    ends: Tensor,
    types: Tensor,
) -> Tensor:
    """The exact probability under a CRF that a span is an entity of a type, beginning and ending
    where it does: the share of all tag sequences, by weight, that decode to it. One pass over the
    tokens serves any number of spans.

    emissions (Tensor): Scores. Shape: (documents, longest, tags).
    lengths (Tensor): Tokens a document. Shape: (documents,).
    chain (Chain): The other scores.
    tag_set (TagSet): The tags.
    docs (Tensor): The document of each span. Shape: (segments,), as the three that follow.
    starts (Tensor): First tokens, counted in the document.
    ends (Tensor): One after the last tokens.
    types (Tensor): Numbers of the types.
    RETURNS (Tensor): Log-probabilities in working precision. Shape: (segments,).
    """
    if not len(docs):
        return torch.zeros(0, dtype=work_dtype(emissions.device), device=emissions.device)
    messages = run_messages(emissions, lengths, chain)
    emissions = emissions.to(work_dtype(emissions.device))
    roles = torch.from_numpy(tag_set.role_tags).to(types.device)[types]
    inside_score = _score_inside(
        emissions, chain.transitions.to(emissions.dtype), roles, docs, starts, ends
    )
    single = ends - starts == 1
    first_tag = torch.where(single, roles[:, 3], roles[:, 0])
    last_tag = torch.where(single, roles[:, 3], roles[:, 2])

    left = messages.before[0, docs, starts, first_tag].log()
    left = left + torch.where(
        starts > 0, messages.log_scale_left[docs, (starts - 1).clamp(min=0)], 0.0
    )
    following = exp_allowed(chain.transitions, chain.allowed_transitions)[last_tag]
    if not tag_set.marks_ends:
        # Where the scheme doesn't mark the end, the next token must not go on with the entity.
        following = following.scatter(1, roles[:, 1:2], 0.0)
    next_token = ends.clamp(max=emissions.shape[1] - 1)
    right = (following * messages.after[0, docs, next_token]).sum(1).log()
    right = right + messages.log_scale_right[docs, next_token]
    at_end = exp_allowed(chain.end, chain.allowed_end).log()[last_tag]
    right = torch.where(ends == lengths[docs], at_end, right)
    return left + inside_score + right - messages.log_partition[docs]


def _score_inside(
    emissions: Tensor,
    transitions: Tensor,
    roles: Tensor,
    docs: Tensor,
    starts: Tensor,
    ends: Tensor,
) -> Tensor:
    """RETURNS (Tensor): Emissions and transitions within each segment. Shape: (segments,)."""
    begin, inside, last, single = roles.unbind(1)
    widths = ends - starts
    # sums[:, i] is the sum over the first i tokens.
    sums = torch.nn.functional.pad(emissions.cumsum(1), (0, 0, 1, 0))
    middle = sums[docs, ends - 1, inside] - sums[docs, torch.minimum(starts + 1, ends - 1), inside]
    longer = emissions[docs, starts, begin] + middle + emissions[docs, ends - 1, last]
    steps = transitions[begin, inside] + transitions[inside, last]
    steps = steps + (widths - 3) * transitions[inside, inside]
    longer = longer + torch.where(widths == 2, transitions[begin, last], steps)
    return torch.where(widths == 1, emissions[docs, starts, single], longer)


@torch.no_grad()
def softmax_segment_log_probs(
    emissions: Tensor,
    lengths: Tensor,
    tag_set: TagSet,
    *,
    docs: Tensor,
    starts: Tensor,
    ends: Tensor,
    types: Tensor,
) -> Tensor:
    """The product of the probabilities of a span's tags, for tokens that are classified one by
    one.

    emissions (Tensor): Logits of all tokens of the batch. Shape: (tokens, tags).
    lengths (Tensor): Tokens a document. Shape: (documents,).
    tag_set (TagSet): The tags.
    docs (Tensor): The document of each span. Shape: (segments,), as the three that follow.
    starts (Tensor): First tokens, counted in the document.
    ends (Tensor): One after the last tokens.
    types (Tensor): Numbers of the types.
    RETURNS (Tensor): Log-probabilities in working precision. Shape: (segments,).
    """
    emissions = emissions.to(work_dtype(emissions.device))
    if not len(docs):
        return emissions.new_zeros(0)
    log_probs = pad(torch.log_softmax(emissions, dim=1), lengths)
    roles = torch.from_numpy(tag_set.role_tags).to(types.device)[types]
    no_transitions = emissions.new_zeros(len(tag_set), len(tag_set))
    return _score_inside(log_probs, no_transitions, roles, docs, starts, ends)
