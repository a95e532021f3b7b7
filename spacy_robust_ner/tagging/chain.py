r"""Sums over all tag sequences of a linear chain, with their gradients by forward-backward.

Both directions run in one loop over the tokens: the backward messages of a chain are the forward
messages of the reversed chain. The messages are kept as probabilities, rescaled at each token, in
double precision: a step is then a small matrix product instead of a log-sum-exp over all pairs of
tags, and tags that are :math:`e^{-700}` times less likely still count. Autograd never sees the
loop. What is forbidden has the exact weight 0.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


class Chain(NamedTuple):
    """The scores of a chain.

    transitions (Tensor): From a tag (row) to the next (column). Shape: (tags, tags).
    start (Tensor): Of the first tag. Shape: (tags,).
    end (Tensor): Of the last tag. Shape: (tags,).
    allowed_transitions (Tensor): Which transitions exist at all. Shape: (tags, tags).
    allowed_start (Tensor): Which tags may be first. Shape: (tags,).
    allowed_end (Tensor): Which tags may be last. Shape: (tags,).
    """

    transitions: Tensor
    start: Tensor
    end: Tensor
    allowed_transitions: Tensor
    allowed_start: Tensor
    allowed_end: Tensor


def work_dtype(device: torch.device) -> torch.dtype:
    """RETURNS (torch.dtype): Double precision, unless the device has none."""
    return torch.float32 if device.type == "mps" else torch.float64


@dataclass(frozen=True)
class Messages:
    """What the tokens on either side say about each token. The first dimension holds the values
    and, if a direction was given, their derivatives in this direction.

    before (Tensor): From the left, without the token itself.
        Shape: (parts, documents, longest, tags), as the two that follow.
    through (Tensor): From the left, with the token itself.
    after (Tensor): From the right, with the token itself.
    log_scale_left (Tensor): Logarithm of what `through` was divided by, in all tokens up to and
        including this one. Shape: (documents, longest).
    log_scale_right (Tensor): The same for `after`, from the right. Shape: (documents, longest).
    log_partition (Tensor): Shape: (documents,).
    """

    before: Tensor
    through: Tensor
    after: Tensor
    log_scale_left: Tensor
    log_scale_right: Tensor
    log_partition: Tensor


@torch.no_grad()
def run_messages(
    emissions: Tensor,
    lengths: Tensor,
    chain: Chain,
    *,
    skip_incoming: Tensor | None = None,
    direction: Tensor | None = None,
) -> Messages:
    """Pass messages along the chains of a batch.

    emissions (Tensor): A score for each token and tag, -inf for what is forbidden.
        Shape: (documents, longest, tags), with longest at least 1.
    lengths (Tensor): Tokens a document. Shape: (documents,).
    chain (Chain): The other scores.
    skip_incoming (Optional[Tensor]): Tokens whose incoming transition (or start) scores 0, if it
        is allowed. Shape: (documents, longest).
    direction (Optional[Tensor]): Derivative of the emissions in a direction; asks for the
        derivatives of the messages. Shape: (documents, longest, tags).
    RETURNS (Messages): The messages; those of padding mean nothing.
    """
    n_docs, longest, n_tags = emissions.shape
    dtype = work_dtype(emissions.device)
    emissions = emissions.to(dtype)
    tiny = torch.finfo(dtype).tiny
    peak = emissions.amax(2)
    peak = torch.where(peak.isfinite(), peak, 0.0)
    potentials = torch.exp(emissions - peak.unsqueeze(2))
    positions = torch.arange(longest, device=emissions.device)
    mirrored = (lengths.unsqueeze(1) - 1 - positions).clamp(min=0)

    weights = exp_allowed(chain.transitions, chain.allowed_transitions)
    matrices = torch.stack((weights, weights.t()))
    start = exp_allowed(chain.start, chain.allowed_start)
    end = exp_allowed(chain.end, chain.allowed_end)
    skips, free_matrices = None, matrices
    n_parts = 1 if direction is None else 2
    before = emissions.new_zeros(longest, 2, n_parts, n_docs, n_tags)
    before[0, 0, 0], before[0, 1, 0] = start, end
    if skip_incoming is not None:
        free = chain.allowed_transitions.to(dtype)
        free_matrices = torch.stack((free, free.t()))
        # Walking from the right, the transition to a token is the one into its right neighbour.
        skip_next = skip_incoming.gather(1, (mirrored + 1).clamp(max=longest - 1))
        skips = torch.stack((skip_incoming.t(), skip_next.t()), 1)[:, :, None, :, None]
        before[0, 0, 0] = torch.where(skips[0, 0, 0], chain.allowed_start.to(dtype), start)
    through = torch.empty_like(before)
    totals = emissions.new_empty(longest, 2, 1, n_docs, 1)
    step_potentials = _both_ways(potentials, mirrored)
    step_direction = None if direction is None else _both_ways(direction.to(dtype), mirrored)
    # Small batches spend their time on taking views, so all are taken before the loop.
    rows = (longest, 2, n_parts * n_docs, n_tags)
    before_rows, through_rows = before.view(rows).unbind(), through.view(rows).unbind()
    values, slopes = through[:, :, :1].unbind(), through[:, :, 1:].unbind()
    scales = totals.unbind()
    steps = zip(before.unbind(), through.unbind(), step_potentials.unbind(), strict=True)
    for i, (past, here, potential) in enumerate(steps):
        if i:
            torch.bmm(through_rows[i - 1], matrices, out=before_rows[i])
            if skips is not None:
                unscored = torch.bmm(through_rows[i - 1], free_matrices).view_as(past)
                torch.where(skips[i], unscored, past, out=past)
        torch.mul(past, potential, out=here)
        if step_direction is not None:
            slopes[i].addcmul_(values[i], step_direction[i])
        torch.sum(values[i], dim=3, keepdim=True, out=scales[i])
        here.div_(scales[i].clamp_(min=tiny))

    left, right = through.unbind(1)
    through_left, through_right = left.permute(1, 2, 0, 3), right.permute(1, 2, 0, 3)
    after = through_right.gather(2, mirrored[None, :, :, None].expand_as(through_right))
    log_totals = totals.log().view(longest, 2, n_docs)
    scale_left = torch.cumsum(log_totals[:, 0].t() + peak, 1)
    scale_right = torch.cumsum(log_totals[:, 1].t() + peak.gather(1, mirrored), 1)
    last = (lengths - 1).clamp(min=0)
    docs = torch.arange(n_docs, device=lengths.device)
    ended = (through_left[0, docs, last] * end).sum(1).log() + scale_left[docs, last]
    return Messages(
        before=before[:, 0].permute(1, 2, 0, 3),
        through=through_left,
        after=after,
        log_scale_left=scale_left,
        log_scale_right=scale_right.gather(1, mirrored),
        log_partition=torch.where(lengths > 0, ended, 0.0),
    )


def exp_allowed(scores: Tensor, allowed: Tensor) -> Tensor:
    """RETURNS (Tensor): exp(scores), and 0 for what is not allowed, in working precision."""
    return torch.exp(scores.detach().to(work_dtype(scores.device))) * allowed


def _both_ways(values: Tensor, mirrored: Tensor) -> Tensor:
    """values (Tensor): Shape: (documents, longest, tags).
    mirrored (Tensor): Position counted from each document's end. Shape: (documents, longest).
    RETURNS (Tensor): In order of the steps, from the left and from the right.
        Shape: (longest, 2, 1, documents, tags).
    """
    reverse = values.gather(1, mirrored.unsqueeze(2).expand_as(values))
    return torch.stack((values, reverse)).permute(2, 0, 1, 3).unsqueeze(2).contiguous()


class _Expectations(NamedTuple):
    """Expected occurrences, or the derivatives of these. What is sent back as gradients."""

    emissions: Tensor
    transitions: Tensor
    start: Tensor
    end: Tensor


def _expectations(
    parts: tuple[Tensor, Tensor, Tensor],
    lengths: Tensor,
    chain: Chain,
    skip_incoming: Tensor | None,
    factors: Tensor,
) -> _Expectations:
    """parts (Tuple[Tensor, Tensor, Tensor]): The messages before, through and after.
    lengths (Tensor): Tokens a document. Shape: (documents,).
    chain (Chain): The scores.
    skip_incoming (Optional[Tensor]): As in `run_messages`.
    factors (Tensor): What each document counts. Shape: (documents,).
    RETURNS (_Expectations): Summed over the documents, except for the emissions.
    """
    before, through, after = parts
    n_docs, longest = before.shape[1:3]
    positions = torch.arange(longest, device=lengths.device)
    counts = torch.where(positions < lengths.unsqueeze(1), factors.unsqueeze(1), 0.0).unsqueeze(2)
    joint = before[0] * after[0]
    norm = joint.sum(2, keepdim=True).clamp(min=torch.finfo(joint.dtype).tiny)
    # Each pair of tags (i, j) at neighbouring tokens has the probability left_i T_ij right_j.
    left, right = through[:, :, :-1], (after / norm)[:, :, 1:]
    tokens = joint / norm
    if len(before) == 2:
        slope = (before[1] * after[0] + before[0] * after[1]) / norm
        mean = slope.sum(2, keepdim=True)
        tokens = slope - tokens * mean
        right = torch.stack((right[1] - mean[:, 1:] * right[0], right[0]))
    tokens = torch.where(counts == 0, 0.0, tokens * counts)
    scored = counts[:, 1:]
    first = tokens[:, 0]
    if skip_incoming is not None:
        scored = scored.masked_fill(skip_incoming[:, 1:, None], 0.0)
        first = first.masked_fill(skip_incoming[:, :1], 0.0)
    right = torch.where(scored == 0, 0.0, right * scored)
    n_tags = before.shape[3]
    pairs = left.reshape(-1, n_tags).t() @ right.reshape(-1, n_tags)
    weights = exp_allowed(chain.transitions, chain.allowed_transitions)
    docs = torch.arange(n_docs, device=lengths.device)
    final = tokens[docs, (lengths - 1).clamp(min=0)]
    return _Expectations(tokens, pairs * weights, first.sum(0), final.sum(0))


class _LogPartition(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        emissions: Tensor,
        transitions: Tensor,
        start: Tensor,
        end: Tensor,
        chain: Chain,
        lengths: Tensor,
        skip_incoming: Tensor | None,
        direction: Tensor | None,
    ) -> Tensor:
        messages = run_messages(
            emissions, lengths, chain, skip_incoming=skip_incoming, direction=direction
        )
        ctx.save_for_backward(
            messages.before, messages.through, messages.after, lengths, skip_incoming
        )
        ctx.chain = chain
        ctx.dtypes = tuple(scores.dtype for scores in (emissions, transitions, start, end))
        if direction is None:
            return messages.log_partition
        return expected_counts(messages, lengths, direction)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        before, through, after, lengths, skip_incoming = ctx.saved_tensors
        found = _expectations((before, through, after), lengths, ctx.chain, skip_incoming, grad)
        grads = (g.to(dtype) for g, dtype in zip(found, ctx.dtypes, strict=True))
        return (*grads, None, None, None, None)


def token_marginals(messages: Messages, lengths: Tensor) -> Tensor:
    """RETURNS (Tensor): The probability of each tag at each token, 0 in the padding.
    Shape: (documents, longest, tags).
    """
    joint = messages.before[0] * messages.after[0]
    norm = joint.sum(2, keepdim=True).clamp(min=torch.finfo(joint.dtype).tiny)
    positions = torch.arange(joint.shape[1], device=joint.device)
    return torch.where((positions < lengths.unsqueeze(1)).unsqueeze(2), joint / norm, 0.0)


def expected_counts(messages: Messages, lengths: Tensor, counts: Tensor) -> Tensor:
    """RETURNS (Tensor): The expected sum of `counts` over the tags. Shape: (documents,)."""
    return (token_marginals(messages, lengths) * counts).sum((1, 2))


def log_partition(
    emissions: Tensor, lengths: Tensor, chain: Chain, *, skip_incoming: Tensor | None = None
) -> Tensor:
    """The logarithm of the sum of exp(score) over all allowed tag sequences, with gradient.

    emissions (Tensor): Scores, -inf for what is forbidden. Shape: (documents, longest, tags).
    lengths (Tensor): Tokens a document. Shape: (documents,).
    chain (Chain): The other scores.
    skip_incoming (Optional[Tensor]): As in `run_messages`.
    RETURNS (Tensor): In working precision; -inf without any sequence, 0 without tokens.
        Shape: (documents,).
    """
    return _apply(emissions, lengths, chain, skip_incoming, None)


def expectation(emissions: Tensor, lengths: Tensor, chain: Chain, counts: Tensor) -> Tensor:
    r"""The expectation of a sum over the tokens, with gradient. It is the derivative of the log
    partition in the direction of `counts`, so its gradient is the derivative of the marginals in
    this direction: one more column in the same loop instead of a gradient of a gradient.

    emissions (Tensor): Scores, -inf for what is forbidden. Shape: (documents, longest, tags).
    lengths (Tensor): Tokens a document. Shape: (documents,).
    chain (Chain): The other scores.
    counts (Tensor): What a tag at a token counts. Shape: (documents, longest, tags).
    RETURNS (Tensor): In working precision. Shape: (documents,).
    """
    return _apply(emissions, lengths, chain, None, counts)


def _apply(
    emissions: Tensor,
    lengths: Tensor,
    chain: Chain,
    skip_incoming: Tensor | None,
    direction: Tensor | None,
) -> Tensor:
    if not emissions.shape[1]:
        return emissions.to(work_dtype(emissions.device)).sum((1, 2))
    # Autograd must follow the scores through the arguments alone.
    detached = Chain(*(scores.detach() for scores in chain))
    result: Tensor = _LogPartition.apply(
        emissions, *chain[:3], detached, lengths, skip_incoming, direction
    )
    return result
