"""Going through all candidates of a batch, in training without gradient and at inference.

Training has two phases. Where a sampler or the ratio term reads scores, phase one scores all
candidates without gradient and without dropout, chunk by chunk; phase two scores the chosen spans
alone, with gradient. A sampler that reads nothing needs no scores at all.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from ..candidates import BatchAnnotation, Candidates, CandidateTable
from ..types import Projections, SamplerInput, SpanHead, SpanOutput
from .samplers import mean_unit_vector

# Small enough for the temporary tensors of a block to stay in the processor's cache.
DEFAULT_BLOCK = 512


@contextmanager
def without_dropout(module: nn.Module) -> Iterator[None]:
    """Switch a module to evaluation, and afterwards back to what it was."""
    was_training = module.training
    module.eval()
    try:
        yield
    finally:
        module.train(was_training)


def score_in_blocks(
    head: SpanHead,
    projections: Projections,
    starts: Tensor,
    ends: Tensor,
    *,
    block: int = DEFAULT_BLOCK,
) -> SpanOutput:
    """Score many spans with small temporary tensors. For use without gradient.

    head (SpanHead): The head.
    projections (Projections): From its `prepare`.
    starts (Tensor): First token rows. Shape: (spans,).
    ends (Tensor): One after the last token rows. Shape: (spans,).
    block (int): Spans to score at a time.
    RETURNS (SpanOutput): Logits and vectors of all spans.
    """
    outputs = list(score_blocks(head, projections, starts, ends, block=block))
    if len(outputs) == 1:
        return outputs[0]
    return SpanOutput(
        torch.cat([output.logits for output in outputs]),
        torch.cat([output.vectors for output in outputs]),
    )


def score_blocks(
    head: SpanHead,
    projections: Projections,
    starts: Tensor,
    ends: Tensor,
    *,
    block: int = DEFAULT_BLOCK,
) -> Iterator[SpanOutput]:
    """Score many spans with small temporary tensors, for those who do not need all the vectors at
    once: collecting them costs as much as a good part of the scoring.

    head (SpanHead): The head.
    projections (Projections): From its `prepare`.
    starts (Tensor): First token rows. Shape: (spans,).
    ends (Tensor): One after the last token rows. Shape: (spans,).
    block (int): Spans to score at a time.
    YIELDS (SpanOutput): Logits and vectors of the next spans; at least once.
    """
    for pair in zip(starts.split(block), ends.split(block), strict=True):
        yield head.score(projections, *pair)


def score_with_gradient(
    head: SpanHead, tokens: Tensor, starts: Tensor, ends: Tensor, *, chunk_size: int
) -> SpanOutput:
    """Score spans for training. Of more spans than a chunk, only logits and vectors are kept for
    the backward pass, and the rest is computed again.

    head (SpanHead): The head.
    tokens (Tensor): Token vectors with gradient. Shape: (tokens, width).
    starts (Tensor): First token rows. Shape: (spans,).
    ends (Tensor): One after the last token rows. Shape: (spans,).
    chunk_size (int): Spans to score at a time.
    RETURNS (SpanOutput): Logits and vectors of all spans.
    """
    projections = head.prepare(tokens)
    if len(starts) <= chunk_size:
        return head.score(projections, starts, ends)

    def score_chunk(chunk_starts: Tensor, chunk_ends: Tensor) -> tuple[Tensor, Tensor]:
        output = head.score(projections, chunk_starts, chunk_ends)
        return output.logits, output.vectors

    pieces = [
        checkpoint(score_chunk, *piece, use_reentrant=False)
        for piece in zip(starts.split(chunk_size), ends.split(chunk_size), strict=True)
    ]
    return SpanOutput(
        torch.cat([logits for logits, _ in pieces]), torch.cat([vectors for _, vectors in pieces])
    )


def candidate_tensors(spans: Candidates, device: torch.device) -> tuple[Tensor, Tensor]:
    """RETURNS (Tuple[Tensor, Tensor]): Starts and ends on a device. Shapes: (spans,)."""
    return _tensor(spans.starts, device), _tensor(spans.ends, device)


def _tensor(values: NDArray[Any], device: torch.device) -> Tensor:
    return torch.from_numpy(values).to(device)


@torch.no_grad()
def positive_anchor(
    head: SpanHead, projections: Projections, table: CandidateTable, annotation: BatchAnnotation
) -> Tensor | None:
    """The mean unit vector of the batch's labelled spans.

    head (SpanHead): The head, with dropout switched off.
    projections (Projections): From its `prepare`.
    table (CandidateTable): The candidates.
    annotation (BatchAnnotation): The annotation.
    RETURNS (Optional[Tensor]): None if nothing is labelled. Shape: (hidden,).
    """
    rows = annotation.positive_rows
    starts, ends = candidate_tensors(table.spans_at(rows), projections[0].device)
    return mean_unit_vector(head.score(projections, starts, ends).vectors)


@dataclass(frozen=True)
class RepresentationSimilarity:
    """Compares the representations of spans with those of the batch's labelled ones.

    head (SpanHead): The head.
    tokens (Tensor): Token vectors. Shape: (tokens, width).
    anchor (Tensor): Mean unit vector of the labelled spans. Shape: (representation,).
    """

    head: SpanHead
    tokens: Tensor
    anchor: Tensor

    @classmethod
    @torch.no_grad()
    def of(
        cls, head: SpanHead, tokens: Tensor, table: CandidateTable, annotation: BatchAnnotation
    ) -> "RepresentationSimilarity | None":
        """RETURNS (Optional[RepresentationSimilarity]): None if nothing is labelled."""
        starts, ends = candidate_tensors(table.spans_at(annotation.positive_rows), tokens.device)
        anchor = mean_unit_vector(head.represent(tokens, starts, ends))
        return None if anchor is None else cls(head, tokens, anchor)

    def __call__(self, starts: Tensor, ends: Tensor) -> Tensor:
        """RETURNS (Tensor): Mean cosines. Shape: (spans,)."""
        blocks = zip(starts.split(DEFAULT_BLOCK), ends.split(DEFAULT_BLOCK), strict=True)
        return torch.cat([self.head.similarity(self.tokens, self.anchor, *pair) for pair in blocks])


@torch.no_grad()
def scan(
    table: CandidateTable,
    annotation: BatchAnnotation,
    *,
    budget: int,
    device: torch.device,
    head: SpanHead | None = None,
    projections: Projections | None = None,
    with_vectors: bool = True,
    similarity: RepresentationSimilarity | None = None,
) -> Iterator[SamplerInput]:
    """Go through all candidates of a batch for those that choose among them.

    table (CandidateTable): The candidates.
    annotation (BatchAnnotation): What is known about them.
    budget (int): The greatest number of candidates in memory at a time.
    device (torch.device): Where the tensors shall be.
    head (Optional[SpanHead]): The head, with dropout switched off, if scores are wanted.
    projections (Optional[Projections]): From its `prepare`.
    with_vectors (bool): Whether span vectors are wanted as well as scores.
    similarity (Optional[RepresentationSimilarity]): Compares the candidates with the positives.
    YIELDS (SamplerInput): The next candidates, with log-probabilities and vectors if there is a
        head.
    """
    for spans in table.chunks(budget):
        log_probs = vectors = None
        if head is not None and projections is not None:
            starts, ends = candidate_tensors(spans, device)
            if with_vectors:
                output = score_in_blocks(head, projections, starts, ends)
                logits, vectors = output.logits, output.vectors
            else:
                blocks = score_blocks(head, projections, starts, ends)
                logits = torch.cat([output.logits for output in blocks])
            log_probs = torch.log_softmax(logits, dim=1)
        similarities = None
        if similarity is not None:
            similarities = similarity(*candidate_tensors(spans, device))
        offset = table.doc_starts[spans.doc_index]
        yield SamplerInput(
            rows=_tensor(spans.rows, device),
            doc_index=_tensor(spans.doc_index, device),
            starts=_tensor(spans.starts - offset, device),
            ends=_tensor(spans.ends - offset, device),
            is_positive=_tensor(annotation.is_positive(spans), device),
            is_unknown=_tensor(annotation.is_unknown(spans), device),
            is_true_negative=_tensor(annotation.is_true_negative(spans), device),
            log_probs=log_probs,
            vectors=vectors,
            similarity=similarities,
        )
