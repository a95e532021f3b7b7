r"""Spans that compete: a semi-Markov model over the scores of all candidates.

A document is cut into entities, each a candidate span with a label, and single tokens outside of
any entity. A segmentation scores the sum of its entities' scores :math:`o_l - o_O`, and

.. math:: p(y) = \exp(score(y)) / Z, \quad
    Z_{j} = Z_{j-1} + \sum_{w \le W} Z_{j-w} \sum_l \exp(o_{j-w,j,l} - o_{j-w,j,O})

sums over all of them, linear in the document's length (Sarawagi and Cohen 2004). Independent spans
can each have a small probability and together claim any number of entities; segments can't.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..candidates import CandidateTable

# Far below any score, and finite: differences stay numbers, and their gradients 0.
BLOCKED = -1.0e6


@dataclass(frozen=True)
class SegmentGrid:
    """Where the candidates of a batch lie in padded tensors.

    index (Tensor): Place of each candidate in a (documents, tokens, widths) tensor, by its last
        token and width. Shape: (candidates,).
    mirrored (Tensor): The same for documents read from their padded end to their start.
        Shape: (candidates,).
    first (Tensor): Place of its start in a (documents, tokens + 1) tensor. Shape: (candidates,).
    last (Tensor): Place of its end. Shape: (candidates,).
    n_docs (int): Documents in the batch.
    n_tokens (int): Tokens of the longest.
    n_widths (int): Tokens of the widest candidate.
    """

    index: Tensor
    mirrored: Tensor
    first: Tensor
    last: Tensor
    n_docs: int
    n_tokens: int
    n_widths: int

    @classmethod
    def of(cls, table: CandidateTable, device: torch.device) -> "SegmentGrid":
        """table (CandidateTable): All candidates of a batch.
        device (torch.device): Where the tensors shall be.
        RETURNS (SegmentGrid): Their places.
        """
        spans = table.spans()
        offsets = table.doc_starts[spans.doc_index]
        starts, ends = spans.starts - offsets, spans.ends - offsets
        n_tokens = int(table.lengths.max(initial=0))
        n_widths = int((ends - starts).max(initial=1))
        doc_tokens, width_column = spans.doc_index * n_tokens, ends - starts - 1
        index = (doc_tokens + ends - 1) * n_widths + width_column
        mirrored = (doc_tokens + n_tokens - 1 - starts) * n_widths + width_column
        borders = spans.doc_index * (n_tokens + 1)
        index, mirrored, first, last = (
            torch.from_numpy(values).to(device)
            for values in (index, mirrored, borders + starts, borders + ends)
        )
        return cls(index, mirrored, first, last, len(table.lengths), n_tokens, n_widths)

    def pad(self, scores: Tensor) -> Tensor:
        """scores (Tensor): One score a candidate. Shape: (candidates,).
        RETURNS (Tensor): The same by document, last token and width, blocked where there is no
            candidate. Shape: (documents, tokens, widths).
        """
        return self._place(scores, self.index)

    def mirror(self, scores: Tensor) -> Tensor:
        """RETURNS (Tensor): As `pad`, for documents read from their padded end to their start."""
        return self._place(scores, self.mirrored)

    def _place(self, scores: Tensor, index: Tensor) -> Tensor:
        blocked = scores.new_full((self.n_docs * self.n_tokens * self.n_widths,), BLOCKED)
        padded = blocked.index_put((index,), scores)
        return padded.view(self.n_docs, self.n_tokens, self.n_widths)


def log_partition(segments: Tensor, outside: Tensor) -> Tensor:
    """Sum over all segmentations of each prefix.

    segments (Tensor): Score of the entity that ends with a token and has a width.
        Shape: (documents, tokens, widths).
    outside (Tensor): Score of a token outside of entities. Shape: (documents, tokens).
    RETURNS (Tensor): Log-sums of the first 0, 1, … tokens. Shape: (documents, tokens + 1).
    """
    n_docs, n_tokens, _ = segments.shape
    prefix = segments.new_zeros(n_docs)
    # The prefixes that an entity of each width would extend, the nearest first.
    window = torch.full_like(segments[:, 0], BLOCKED) if n_tokens else segments.new_zeros(0)
    prefixes = [prefix]
    for token in range(n_tokens):
        window = torch.cat((prefix.unsqueeze(1), window[:, :-1]), dim=1)
        options = torch.cat(
            ((prefix + outside[:, token]).unsqueeze(1), window + segments[:, token]), dim=1
        )
        prefix = options.logsumexp(1)
        prefixes.append(prefix)
    return torch.stack(prefixes, dim=1)


def partition_and_expectation(
    segments: Tensor, outside: Tensor, sizes: Tensor
) -> tuple[Tensor, Tensor]:
    """Log-partition and the expected total size of the entities, both with gradient.

    segments (Tensor): Shape: (documents, tokens, widths).
    outside (Tensor): Shape: (documents, tokens).
    sizes (Tensor): What an entity of each width counts. Shape: (widths,).
    RETURNS (Tuple[Tensor, Tensor]): Shapes: (documents,), (documents,).
    """
    n_docs, n_tokens, _ = segments.shape
    prefix, expected = segments.new_zeros(n_docs), segments.new_zeros(n_docs)
    window = torch.full_like(segments[:, 0], BLOCKED) if n_tokens else segments.new_zeros(0)
    expected_window = torch.zeros_like(window)
    for token in range(n_tokens):
        window = torch.cat((prefix.unsqueeze(1), window[:, :-1]), dim=1)
        expected_window = torch.cat((expected.unsqueeze(1), expected_window[:, :-1]), dim=1)
        options = torch.cat(
            ((prefix + outside[:, token]).unsqueeze(1), window + segments[:, token]), dim=1
        )
        prefix = options.logsumexp(1)
        shares = (options - prefix.unsqueeze(1)).exp()
        counts = torch.cat((expected.unsqueeze(1), expected_window + sizes), dim=1)
        expected = (shares * counts).sum(1)
    return prefix, expected


def entity_scores(logits: Tensor, o_index: int) -> Tensor:
    """logits (Tensor): Shape: (spans, labels).
    o_index (int): Column of "no entity".
    RETURNS (Tensor): Scores of the entity labels relative to it; the column itself is blocked.
        Shape: (spans, labels).
    """
    scores = logits - logits[:, o_index : o_index + 1]
    is_outside = torch.arange(logits.shape[1], device=logits.device) == o_index
    return scores.masked_fill(is_outside, BLOCKED)


def label_marginals(
    logits: Tensor, table: CandidateTable, *, o_index: int, padded_tokens: int = 65536
) -> Tensor:
    """The probability that a span is an entity of a label, given that entities do not overlap.

    logits (Tensor): Logits of all candidates. Shape: (candidates, labels).
    table (CandidateTable): The candidates.
    o_index (int): Column of "no entity".
    padded_tokens (int): Documents are taken together, by length, up to that many tokens with
        padding, so that one long document does not make all the others long.
    RETURNS (Tensor): Probabilities; "no entity" has the rest. Shape: (candidates, labels).
    """
    marginals = torch.empty_like(logits)
    for group in _groups_by_length(table.lengths, padded_tokens):
        rows = np.concatenate(
            [np.arange(table.doc_rows[doc], table.doc_rows[doc + 1]) for doc in group]
        )
        places = torch.from_numpy(rows).to(logits.device)
        own = CandidateTable(table.lengths[group], max_width=table.max_width)
        marginals[places] = _marginals(logits[places], own, o_index)
    return marginals


def _groups_by_length(lengths: NDArray[np.int64], padded_tokens: int) -> Iterator[list[int]]:
    """YIELDS (List[int]): Documents of similar length; those without tokens are left out."""
    group: list[int] = []
    for doc in np.argsort(-lengths, kind="stable").tolist():
        if not lengths[doc]:
            break
        if group and (len(group) + 1) * lengths[group[0]] > padded_tokens:
            yield group
            group = []
        group.append(doc)
    if group:
        yield group


def _marginals(logits: Tensor, table: CandidateTable, o_index: int) -> Tensor:
    grid = SegmentGrid.of(table, logits.device)
    # Log-sums grow with the document; their small differences need the double precision.
    scores = entity_scores(logits.double(), o_index)
    any_label = scores.logsumexp(1)
    # One loop over the tokens for both directions.
    segments = torch.cat((grid.pad(any_label), grid.mirror(any_label)))
    forward, backward = log_partition(segments, segments.new_zeros(segments.shape[:2])).chunk(2)
    backward = backward.flip(1)
    around = forward.flatten()[grid.first] + backward.flatten()[grid.last]
    total = forward[:, -1].repeat_interleave(forward.shape[1])[grid.first]
    marginals = (scores + (around - total).unsqueeze(1)).exp()
    marginals[:, o_index] = 0.0
    marginals[:, o_index] = (1.0 - marginals.sum(1)).clamp(min=0.0)
    return marginals.to(logits.dtype)


def partial_likelihood(
    logits: Tensor,
    grid: SegmentGrid,
    *,
    positive: Tensor,
    targets: Tensor,
    negative: Tensor,
    o_index: int,
) -> Tensor:
    """Log-sum over the segmentations that have every labelled span as an entity of its label and
    no negative one as an entity; the rest is free.

    logits (Tensor): Logits of all candidates. Shape: (candidates, labels).
    grid (SegmentGrid): Their places.
    positive (Tensor): Rows of labelled spans. Shape: (positives,).
    targets (Tensor): Their label columns. Shape: (positives,).
    negative (Tensor): Rows of negatives. Shape: (negatives,).
    o_index (int): Column of "no entity".
    RETURNS (Tensor): One number a document. Shape: (documents,).
    """
    scores = entity_scores(logits, o_index)
    labelled = scores[positive].gather(1, targets.unsqueeze(1)).squeeze(1)
    inside = _inside(grid, positive)
    allowed = scores.logsumexp(1).masked_fill(_overlaps(grid, inside), BLOCKED)
    allowed = allowed.index_fill(0, negative, BLOCKED).index_put((positive,), labelled)
    outside = torch.where(inside, BLOCKED, 0.0).to(scores.dtype)
    return log_partition(grid.pad(allowed), outside)[:, -1]


def _inside(grid: SegmentGrid, rows: Tensor) -> Tensor:
    """RETURNS (Tensor): Tokens of some spans. Shape: (documents, tokens)."""
    borders = torch.zeros(grid.n_docs * (grid.n_tokens + 1), device=rows.device)
    one = torch.ones(len(rows), device=rows.device)
    borders.index_add_(0, grid.first[rows], one)
    borders.index_add_(0, grid.last[rows], -one)
    return borders.view(grid.n_docs, -1).cumsum(1)[:, :-1] > 0.5


def _overlaps(grid: SegmentGrid, tokens: Tensor) -> Tensor:
    """tokens (Tensor): Some tokens. Shape: (documents, tokens).
    RETURNS (Tensor): The candidates that have one of them. Shape: (candidates,).
    """
    before = torch.nn.functional.pad(tokens.cumsum(1), (1, 0)).flatten()
    return before[grid.last] > before[grid.first]
