"""What the span component minimises on one batch: chosen spans, and the terms of the loss."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from ..candidates import BatchAnnotation, Candidates, CandidateTable
from ..errors import Errors
from ..types import (
    LossInput,
    NegativeSample,
    NegativeSampler,
    Projections,
    SamplerContext,
    SpanHead,
    SpanLoss,
    SpanOutput,
)
from .contrastive import ContrastiveTerm
from .ratio import RatioSample, RatioTerm, entity_probabilities
from .scanning import candidate_tensors, positive_anchor, scan, without_dropout
from .selection import NegativeSelection

# Reads the entity confidence of candidates from a first stage. Shape: (spans,).
ConfidenceReader = Callable[[Candidates], Tensor]


@dataclass(frozen=True)
class BatchTerms:
    """The outcome of one batch.

    total (Tensor): What to minimise, a scalar with gradient.
    terms (Dict[str, Tensor]): Its parts as they enter the total, detached, by name.
    negatives (NegativeSample): The chosen negatives.
    vectors (Tensor): Vectors of the labelled spans and the negatives, detached.
        Shape: (spans, hidden).
    targets (Tensor): Their label columns. Shape: (spans,).
    """

    total: Tensor
    terms: dict[str, Tensor]
    negatives: NegativeSample
    vectors: Tensor
    targets: Tensor


@dataclass(frozen=True)
class _RatioSpans:
    """The candidates that carry the gradient of the ratio term; without weights they are all."""

    rows: Tensor
    weights: Tensor | None = None
    exact: Tensor | None = None


@dataclass
class SpanObjective:
    """The settings of training, and the objective that follows from them.

    sampler (NegativeSampler): Chooses the negatives.
    loss (SpanLoss): Loss of the labelled spans and the negatives.
    contrastive (Optional[ContrastiveTerm]): The contrastive term.
    ratio (Optional[RatioTerm]): The expected-ratio term.
    ratio_spans (int): At most that many candidates carry the gradient of the ratio term.
    use_all_true_negatives (bool): Take every span that is vouched for as a negative.
    chunk_size (int): The greatest number of candidates that are scored at a time.
    seed (int): Seed of the ratio term's sample.
    """

    sampler: NegativeSampler
    loss: SpanLoss
    contrastive: ContrastiveTerm | None = None
    ratio: RatioTerm | None = None
    ratio_spans: int = 4096
    use_all_true_negatives: bool = True
    chunk_size: int = 32768
    seed: int = 0
    _generator: torch.Generator = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.loss.needs_uniform_negatives and not self.sampler.is_uniform:
            raise ValueError(
                Errors.R111.format(
                    loss=type(self.loss).__name__, sampler=type(self.sampler).__name__
                )
            )
        self._generator = torch.Generator().manual_seed(self.seed)

    def __call__(
        self,
        head: nn.Module,
        tokens: Tensor,
        table: CandidateTable,
        annotation: BatchAnnotation,
        context: SamplerContext,
        confidence: ConfidenceReader | None = None,
    ) -> BatchTerms:
        """Choose negatives and compute the loss of a batch.

        head (nn.Module): The head, a SpanHead.
        tokens (Tensor): Token vectors with gradient. Shape: (tokens, width).
        table (CandidateTable): The candidates.
        annotation (BatchAnnotation): What is known about them.
        context (SamplerContext): The batch and the course of training.
        confidence (Optional[ConfidenceReader]): First-stage confidence, if the loss needs it.
        RETURNS (BatchTerms): Loss and choice.
        """
        if not isinstance(head, SpanHead):
            raise TypeError(Errors.R112.format(head=type(head).__name__))
        negatives, ratio_spans = self._choose(head, tokens, table, annotation, context)
        positive_rows = torch.from_numpy(annotation.positive_rows).to(tokens.device)
        rows = torch.cat((positive_rows, negatives.rows))
        wanted = rows if ratio_spans is None else torch.cat((rows, ratio_spans.rows))
        scored, place = torch.unique(wanted, return_inverse=True)
        spans = table.spans_at(scored.cpu().numpy())
        output = self._score(head, head.prepare(tokens), *candidate_tensors(spans, tokens.device))
        chosen, ratio_place = place[: len(rows)], place[len(rows) :]
        targets = torch.full_like(rows, context.o_index)
        targets[: len(positive_rows)] = torch.from_numpy(annotation.positive_labels).to(rows.device)
        main = self.loss(
            LossInput(
                logits=output.logits[chosen],
                targets=targets,
                n_docs=len(table.lengths),
                o_index=context.o_index,
                epoch=context.epoch,
                weights=self._weights(negatives, len(positive_rows)),
                confidence=self._confidence(confidence, table, rows),
            )
        )
        total, terms = main, {"spans": main.detach()}
        if self.contrastive is not None:
            term = self.contrastive(output.vectors[chosen], targets, o_index=context.o_index)
            total = self.contrastive.combine(main, term)
            terms["contrastive"] = (self.contrastive.weight * term).detach()
            terms["spans"] = total.detach() - terms["contrastive"]
        if self.ratio is not None and ratio_spans is not None:
            starts, ends = candidate_tensors(spans, tokens.device)
            term = self.ratio(
                entity_probabilities(output.logits[ratio_place], context.o_index),
                self.ratio.sizes(starts[ratio_place], ends[ratio_place]),
                n_tokens=table.n_tokens,
                weights=ratio_spans.weights,
                exact=ratio_spans.exact,
            )
            total = total + term
            terms["ratio"] = term.detach()
        return BatchTerms(total, terms, negatives, output.vectors[chosen].detach(), targets)

    @torch.no_grad()
    def _choose(
        self,
        head: SpanHead,
        tokens: Tensor,
        table: CandidateTable,
        annotation: BatchAnnotation,
        context: SamplerContext,
    ) -> tuple[NegativeSample, _RatioSpans | None]:
        """Phase one: go through all candidates once, with scores only where somebody reads them."""
        ratio_sample, ratio_spans = None, None
        if self.ratio is not None:
            if len(table) <= self.ratio_spans:
                ratio_spans = _RatioSpans(torch.arange(len(table), device=tokens.device))
            else:
                ratio_sample = RatioSample(
                    self.ratio_spans,
                    term=self.ratio,
                    o_index=context.o_index,
                    generator=self._generator,
                )
        needs_head = (
            self.sampler.needs_scores or self.sampler.needs_vectors or ratio_sample is not None
        )
        with without_dropout(head):  # type: ignore[arg-type]
            projections = head.prepare(tokens) if needs_head else None
            if projections is not None and self.sampler.needs_vectors:
                anchor = positive_anchor(head, projections, table, annotation)
                context = replace(context, anchor=anchor)
            selection = NegativeSelection(
                self.sampler, context, use_all_true_negatives=self.use_all_true_negatives
            )
            for candidates in scan(
                table,
                annotation,
                budget=self.chunk_size,
                device=tokens.device,
                head=head if needs_head else None,
                projections=projections,
            ):
                selection.add(candidates)
                if ratio_sample is not None:
                    ratio_sample.add(candidates)
        if ratio_sample is not None:
            subset = ratio_sample.finish()
            if subset is not None:
                dtype = tokens.dtype
                ratio_spans = _RatioSpans(
                    subset.rows, subset.weights.to(dtype), subset.exact.to(dtype)
                )
        return selection.finish(), ratio_spans

    def _score(
        self, head: SpanHead, projections: Projections, starts: Tensor, ends: Tensor
    ) -> SpanOutput:
        """Phase two. Of more spans than a chunk, only logits and vectors are kept for the backward
        pass, and the rest is computed again."""
        if len(starts) <= self.chunk_size:
            return head.score(projections, starts, ends)

        def score_chunk(chunk_starts: Tensor, chunk_ends: Tensor) -> tuple[Tensor, Tensor]:
            output = head.score(projections, chunk_starts, chunk_ends)
            return output.logits, output.vectors

        pieces = [
            checkpoint(score_chunk, *piece, use_reentrant=False)
            for piece in zip(
                starts.split(self.chunk_size), ends.split(self.chunk_size), strict=True
            )
        ]
        return SpanOutput(
            torch.cat([logits for logits, _ in pieces]),
            torch.cat([vectors for _, vectors in pieces]),
        )

    def _weights(self, negatives: NegativeSample, n_positives: int) -> Tensor | None:
        if not self.loss.needs_uniform_negatives:
            return None
        return torch.cat((negatives.weights.new_ones(n_positives), negatives.weights))

    def _confidence(
        self, reader: ConfidenceReader | None, table: CandidateTable, rows: Tensor
    ) -> Tensor | None:
        if not self.loss.needs_confidence:
            return None
        if reader is None:
            raise ValueError(Errors.R113.format(loss=type(self.loss).__name__))
        return reader(table.spans_at(rows.cpu().numpy())).to(rows.device)
