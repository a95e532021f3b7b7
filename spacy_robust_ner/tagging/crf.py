"""A conditional random field over the tags of a document."""

import torch
from torch import Tensor, nn

from .chain import Chain, expectation, log_partition, run_messages, token_marginals, work_dtype
from .confidence import segment_log_probs
from .tag_set import TagSet
from .viterbi import viterbi


class CRF(nn.Module):
    r"""Transitions between neighbouring tags, and scores of the first and the last tag:

    .. math::
        s(y) = b_{y_1} + \sum_i h_{i, y_i} + \sum_{i > 1} T_{y_{i-1}, y_i} + e_{y_n}

    Only sequences that the scheme allows exist, in training as in decoding. All methods take a
    padded batch: `emissions` of shape (documents, longest, tags) and `lengths` of shape
    (documents,), where a length may be 0. They compute and answer in double precision.

    tag_set (TagSet): The tags.
    """

    allowed_transitions: Tensor
    allowed_start: Tensor
    allowed_end: Tensor

    def __init__(self, tag_set: TagSet) -> None:
        super().__init__()
        n_tags = len(tag_set)
        self.tag_set = tag_set
        self.transitions = nn.Parameter(torch.empty(n_tags, n_tags).uniform_(-0.1, 0.1))
        self.start = nn.Parameter(torch.empty(n_tags).uniform_(-0.1, 0.1))
        self.end = nn.Parameter(torch.empty(n_tags).uniform_(-0.1, 0.1))
        # The scheme belongs to the tag set; what is saved are the learned scores alone.
        for name in ("allowed_transitions", "allowed_start", "allowed_end"):
            allowed = torch.from_numpy(getattr(tag_set, name))
            self.register_buffer(name, allowed, persistent=False)

    @property
    def chain(self) -> Chain:
        """RETURNS (Chain): The scores and what the scheme allows."""
        return Chain(
            self.transitions,
            self.start,
            self.end,
            self.allowed_transitions,
            self.allowed_start,
            self.allowed_end,
        )

    def log_partition(
        self,
        emissions: Tensor,
        lengths: Tensor,
        *,
        allowed: Tensor | None = None,
        log_weights: Tensor | None = None,
        skip_incoming: Tensor | None = None,
    ) -> Tensor:
        """The log-sum over all tag sequences, or over those that agree with what is known.

        emissions (Tensor): Scores.
        lengths (Tensor): Tokens a document.
        allowed (Optional[Tensor]): Tags that each token may have. Shape as emissions.
        log_weights (Optional[Tensor]): Logarithms of the weight of each tag at each token, -inf
            for none. Shape as emissions.
        skip_incoming (Optional[Tensor]): Tokens into which the transition (or the start) scores
            0. Transitions that the scheme forbids stay forbidden. Shape: (documents, longest).
        RETURNS (Tensor): -inf where no sequence agrees, 0 without tokens. Shape: (documents,).
        """
        emissions = restrict(emissions, allowed=allowed, log_weights=log_weights)
        return log_partition(emissions, lengths, self.chain, skip_incoming=skip_incoming)

    def score(
        self,
        emissions: Tensor,
        lengths: Tensor,
        tags: Tensor,
        *,
        skip_incoming: Tensor | None = None,
    ) -> Tensor:
        """The score of given tag sequences.

        emissions (Tensor): Scores.
        lengths (Tensor): Tokens a document.
        tags (Tensor): A tag a token, anything in the padding. Shape: (documents, longest).
        skip_incoming (Optional[Tensor]): As in `log_partition`.
        RETURNS (Tensor): -inf for a sequence that the scheme forbids. Shape: (documents,).
        """
        n_docs, longest, _ = emissions.shape
        dtype = work_dtype(emissions.device)
        if not longest:
            return emissions.new_zeros(n_docs, dtype=dtype)
        positions = torch.arange(longest, device=lengths.device)
        is_token = positions < lengths.unsqueeze(1)
        tags = tags.masked_fill(~is_token, 0)
        keep = is_token if skip_incoming is None else is_token & ~skip_incoming
        emitted = emissions.gather(2, tags.unsqueeze(2)).squeeze(2).to(dtype)
        emitted = torch.where(is_token, emitted, 0.0).sum(1)
        before, after = tags[:, :-1], tags[:, 1:]
        moved = torch.where(keep[:, 1:], self.transitions[before, after].to(dtype), 0.0).sum(1)
        started = torch.where(keep[:, 0], self.start[tags[:, 0]].to(dtype), 0.0)
        last = tags.gather(1, (lengths - 1).clamp(min=0).unsqueeze(1)).squeeze(1)
        ended = torch.where(lengths > 0, self.end[last].to(dtype), 0.0)
        valid = (self.allowed_transitions[before, after] | ~is_token[:, 1:]).all(1)
        valid = valid & self.allowed_start[tags[:, 0]] & self.allowed_end[last] | (lengths == 0)
        return (emitted + moved + started + ended).masked_fill(~valid, -torch.inf)

    @torch.no_grad()
    def marginals(
        self,
        emissions: Tensor,
        lengths: Tensor,
        *,
        allowed: Tensor | None = None,
        log_weights: Tensor | None = None,
    ) -> Tensor:
        """RETURNS (Tensor): The probability of each tag at each token, given what is known; 0 in
        the padding. Without gradient. Shape: (documents, longest, tags).
        """
        if not emissions.shape[1]:
            return emissions.to(work_dtype(emissions.device))
        emissions = restrict(emissions, allowed=allowed, log_weights=log_weights)
        return token_marginals(run_messages(emissions, lengths, self.chain), lengths)

    def expectation(self, emissions: Tensor, lengths: Tensor, counts: Tensor) -> Tensor:
        """counts (Tensor): What a tag at a token counts. Shape as emissions.
        RETURNS (Tensor): The expected sum of the counts, with gradient. Shape: (documents,).
        """
        return expectation(emissions, lengths, self.chain, counts)

    def viterbi(
        self, emissions: Tensor, lengths: Tensor, *, allowed: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """RETURNS (Tuple[Tensor, Tensor]): The best tags that agree with what is known, "O" in
        the padding, and their scores. Shapes: (documents, longest), (documents,).
        """
        return viterbi(restrict(emissions, allowed=allowed), lengths, self.chain)

    def segment_log_probs(
        self,
        emissions: Tensor,
        lengths: Tensor,
        *,
        docs: Tensor,
        starts: Tensor,
        ends: Tensor,
        types: Tensor,
    ) -> Tensor:
        """RETURNS (Tensor): The log-probability of each span to be an entity of its type; see
        `confidence.segment_log_probs`. Shape: (segments,).
        """
        return segment_log_probs(
            emissions,
            lengths,
            self.chain,
            self.tag_set,
            docs=docs,
            starts=starts,
            ends=ends,
            types=types,
        )


def restrict(
    emissions: Tensor, *, allowed: Tensor | None = None, log_weights: Tensor | None = None
) -> Tensor:
    """RETURNS (Tensor): Emissions plus log-weights, -inf for tags that are not allowed."""
    if log_weights is not None:
        emissions = emissions + log_weights
    if allowed is not None:
        emissions = emissions.masked_fill(~allowed, -torch.inf)
    return emissions
