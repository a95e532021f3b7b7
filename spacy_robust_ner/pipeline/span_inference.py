"""Scoring the candidates of documents without gradient, chunk by chunk."""

from collections.abc import Callable, Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from spacy.attrs import IS_SPACE
from spacy.tokens import Doc
from torch import Tensor, nn

from ..candidates import Candidates, CandidateTable
from ..decoding import ScoredSpans, by_document, find_entities, join
from ..span.choosing import as_span_head
from ..span.scanning import candidate_tensors, score_blocks, without_dropout
from ..span.segmentation import label_marginals
from ..types import SpanOutput

# From a head's output to label probabilities. Shape: (spans, labels).
Probabilities = Callable[[SpanOutput], Tensor]


def label_probabilities(output: SpanOutput) -> Tensor:
    """RETURNS (Tensor): The head's own label probabilities. Shape: (spans, labels)."""
    return torch.softmax(output.logits, dim=1)


@torch.no_grad()
def score_candidates(
    head: nn.Module,
    tokens: Tensor,
    table: CandidateTable,
    *,
    chunk_size: int,
    probabilities: Probabilities = label_probabilities,
) -> Iterator[tuple[Candidates, NDArray[np.float32]]]:
    """Score all candidates of a batch.

    head (nn.Module): A span head.
    tokens (Tensor): Token vectors. Shape: (tokens, width).
    table (CandidateTable): The candidates.
    chunk_size (int): The greatest number of candidates in memory at a time.
    probabilities (Probabilities): From output to label probabilities.
    YIELDS (Tuple[Candidates, NDArray]): Candidates and their probabilities.
        Shape: (spans, labels).
    """
    span_head = as_span_head(head)
    with without_dropout(head):
        projections = span_head.prepare(tokens)
        for spans in table.chunks(chunk_size):
            starts, ends = candidate_tensors(spans, tokens.device)
            blocks = score_blocks(span_head, projections, starts, ends)
            yield spans, torch.cat([probabilities(output) for output in blocks]).cpu().numpy()


@torch.no_grad()
def score_segments(
    head: nn.Module, tokens: Tensor, table: CandidateTable, *, chunk_size: int, o_index: int
) -> Iterator[tuple[Candidates, NDArray[np.float32]]]:
    """Score all candidates of a batch as segments that compete for tokens.

    head (nn.Module): A span head.
    tokens (Tensor): Token vectors. Shape: (tokens, width).
    table (CandidateTable): The candidates.
    chunk_size (int): The greatest number of candidates to score at a time.
    o_index (int): Column of "no entity".
    YIELDS (Tuple[Candidates, NDArray]): All candidates and their probabilities.
        Shape: (spans, labels).
    """
    span_head = as_span_head(head)
    with without_dropout(head):
        projections = span_head.prepare(tokens)
        logits = [
            output.logits
            for spans in table.chunks(chunk_size)
            for output in score_blocks(
                span_head, projections, *candidate_tensors(spans, tokens.device)
            )
        ]
        marginals = label_marginals(torch.cat(logits), table, o_index=o_index)
    yield table.spans(), marginals.cpu().numpy()


def find_spans(
    scored: Iterator[tuple[Candidates, NDArray[np.float32]]],
    table: CandidateTable,
    *,
    o_index: int,
    threshold: float | None,
) -> list[ScoredSpans]:
    """The entities of each document, whether they overlap or not.

    scored (Iterator): From `score_candidates`.
    table (CandidateTable): The candidates.
    o_index (int): Column of "no entity".
    threshold (Optional[float]): The least probability of an entity; None to compare with
        "no entity" instead.
    RETURNS (List[ScoredSpans]): One entry a document.
    """
    found = join(
        [
            find_entities(
                spans.starts,
                spans.ends,
                probs,
                o_index=o_index,
                threshold=0.0 if threshold is None else threshold,
                must_beat_outside=threshold is None,
            )
            for spans, probs in scored
        ]
    )
    return by_document(found, table.doc_starts)


def without_space_edges(doc: Doc, found: ScoredSpans) -> ScoredSpans:
    """Leave out spans that start or end with whitespace, which spaCy does not allow entities to.

    doc (Doc): The document.
    found (ScoredSpans): Entities of the document.
    RETURNS (ScoredSpans): The entities that may stay.
    """
    is_space = doc.to_array(IS_SPACE).astype(bool)
    if not len(found) or not is_space.any():
        return found
    return found.take(np.flatnonzero(~is_space[found.starts] & ~is_space[found.ends - 1]))
