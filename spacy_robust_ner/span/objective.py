"""What the span component minimises on one batch: chosen spans, and the terms of the loss."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from ..candidates import BatchAnnotation, Candidates, CandidateTable
from ..errors import Errors
from ..types import LossInput, NegativeSampler, SpanLoss
from .choosing import ChosenSpans, as_span_head, choose_spans
from .contrastive import ContrastiveTerm
from .ratio import RatioSample, RatioTerm, entity_probabilities
from .scanning import candidate_tensors, score_with_gradient

# Reads the entity confidence of candidates from a first stage. Shape: (spans,).
ConfidenceReader = Callable[[Candidates], Tensor]


@dataclass(frozen=True)
class BatchTerms:
    """The outcome of one batch.

    total (Tensor): What to minimise, a scalar with gradient.
    terms (Dict[str, Tensor]): Its parts as they enter the total, detached, by name.
    chosen (ChosenSpans): The spans it was computed from.
    vectors (Tensor): Vectors of the labelled spans and the negatives, detached.
        Shape: (positives + negatives, hidden).
    """

    total: Tensor
    terms: dict[str, Tensor]
    chosen: ChosenSpans
    vectors: Tensor


@dataclass(frozen=True)
class Course:
    """Where training stands, as far as samplers and losses follow it.

    epoch (int): Completed epochs.
    max_epochs (int): Epochs in all.
    """

    epoch: int = 0
    max_epochs: int = 1


@dataclass(frozen=True)
class SpanBatch:
    """A batch on its way through the objective.

    head (nn.Module): A span head.
    tokens (Tensor): Token vectors with gradient. Shape: (tokens, width).
    table (CandidateTable): The candidates.
    annotation (BatchAnnotation): What is known about them.
    chosen (ChosenSpans): The labelled spans, the negatives and those of the ratio term.
    epoch (int): Completed epochs.
    confidence (Optional[ConfidenceReader]): First-stage confidence.
    o_index (int): Column of "no entity".
    """

    head: nn.Module
    tokens: Tensor
    table: CandidateTable
    annotation: BatchAnnotation
    chosen: ChosenSpans
    epoch: int
    confidence: ConfidenceReader | None
    o_index: int


@dataclass(frozen=True)
class ScoredBatch:
    """main (Tensor): The loss, a scalar with gradient.
    vectors (Tensor): Vectors of the labelled spans and the negatives, with gradient.
        Shape: (positives + negatives, hidden).
    ratio (Optional[Tensor]): The ratio term, a scalar with gradient.
    """

    main: Tensor
    vectors: Tensor
    ratio: Tensor | None


@dataclass(kw_only=True)
class Objective(ABC):
    """The settings of training, and the objective that follows from them.

    sampler (NegativeSampler): Chooses the negatives.
    contrastive (Optional[ContrastiveTerm]): The contrastive term.
    ratio (Optional[RatioTerm]): The expected-ratio term.
    use_all_true_negatives (bool): Take every span that is vouched for as a negative.
    chunk_size (int): The greatest number of candidates that are scored at a time.
    """

    sampler: NegativeSampler
    contrastive: ContrastiveTerm | None = None
    ratio: RatioTerm | None = None
    use_all_true_negatives: bool = True
    chunk_size: int = 32768

    def __call__(
        self,
        head: nn.Module,
        tokens: Tensor,
        table: CandidateTable,
        annotation: BatchAnnotation,
        *,
        course: Course,
        doc_keys: Sequence[int] | None = None,
        confidence: ConfidenceReader | None = None,
        o_index: int = 0,
    ) -> BatchTerms:
        """Choose negatives and compute the loss of a batch.

        head (nn.Module): A span head.
        tokens (Tensor): Token vectors with gradient. Shape: (tokens, width).
        table (CandidateTable): The candidates.
        annotation (BatchAnnotation): What is known about them.
        course (Course): Where training stands.
        doc_keys (Optional[Sequence[int]]): Stable numbers of the documents.
        confidence (Optional[ConfidenceReader]): First-stage confidence, if the loss needs it.
        o_index (int): Column of "no entity".
        RETURNS (BatchTerms): Loss and choice.
        """
        chosen = choose_spans(
            head,
            tokens,
            table,
            annotation,
            self.sampler,
            budget=self.chunk_size,
            o_index=o_index,
            epoch=course.epoch,
            max_epochs=course.max_epochs,
            doc_keys=doc_keys,
            use_all_true_negatives=self.use_all_true_negatives,
            ratio_sample=self.ratio_sample(table, o_index),
        )
        batch = SpanBatch(
            head, tokens, table, annotation, chosen, course.epoch, confidence, o_index
        )
        scored = self.score(batch)
        total, terms = scored.main, {"spans": scored.main.detach()}
        if self.contrastive is not None:
            term = self.contrastive(scored.vectors, chosen.targets, o_index=o_index)
            total = self.contrastive.combine(scored.main, term)
            terms["contrastive"] = (self.contrastive.weight * term).detach()
            terms["spans"] = total.detach() - terms["contrastive"]
        if scored.ratio is not None:
            total = total + scored.ratio
            terms["ratio"] = scored.ratio.detach()
        return BatchTerms(total, terms, chosen, scored.vectors.detach())

    @abstractmethod
    def score(self, batch: SpanBatch) -> ScoredBatch:
        """batch (SpanBatch): A batch whose spans are chosen.
        RETURNS (ScoredBatch): Its loss.
        """

    def ratio_sample(self, table: CandidateTable, o_index: int) -> RatioSample | None:
        """RETURNS (Optional[RatioSample]): Chooses the spans that carry the gradient of the ratio
        term, if these are not all.
        """
        return None


@dataclass(kw_only=True)
class SpanObjective(Objective):
    """Every span for itself.

    loss (SpanLoss): Loss of the labelled spans and the negatives.
    ratio_spans (int): At most that many candidates carry the gradient of the ratio term.
    generator (torch.Generator): Chooses these candidates; on the CPU.
    """

    loss: SpanLoss
    ratio_spans: int = 4096
    generator: torch.Generator = field(default_factory=torch.Generator, repr=False)

    def __post_init__(self) -> None:
        if self.loss.needs_uniform_negatives and not self.sampler.is_uniform:
            raise ValueError(
                Errors.R111.format(
                    loss=type(self.loss).__name__, sampler=type(self.sampler).__name__
                )
            )

    def score(self, batch: SpanBatch) -> ScoredBatch:
        """Score the chosen spans, and compute their loss and the ratio term."""
        chosen, table, o_index = batch.chosen, batch.table, batch.o_index
        rows, ratio_rows = chosen.rows[: chosen.n_labelled], self._ratio_rows(table, chosen)
        # Rows of the ratio term may repeat the others: each is scored once.
        scored, place = torch.unique(torch.cat((rows, ratio_rows)), return_inverse=True)
        starts, ends = candidate_tensors(table.spans_at(scored.cpu().numpy()), batch.tokens.device)
        output = score_with_gradient(
            as_span_head(batch.head), batch.tokens, starts, ends, chunk_size=self.chunk_size
        )
        labelled, in_ratio = place[: len(rows)], place[len(rows) :]
        main = self.loss(
            LossInput(
                logits=output.logits[labelled],
                targets=chosen.targets,
                n_docs=len(table.lengths),
                o_index=o_index,
                epoch=batch.epoch,
                weights=chosen.weights if self.loss.needs_uniform_negatives else None,
                confidence=self._confidence(batch, rows),
            )
        )
        term = None
        if self.ratio is not None:
            dtype = output.logits.dtype
            term = self.ratio(
                entity_probabilities(output.logits[in_ratio], o_index),
                self.ratio.sizes(starts[in_ratio], ends[in_ratio]),
                n_tokens=table.n_tokens,
                weights=None if chosen.ratio is None else chosen.ratio.weights.to(dtype),
                exact=None if chosen.ratio is None else chosen.ratio.exact.to(dtype),
            )
        return ScoredBatch(main, output.vectors[labelled], term)

    def ratio_sample(self, table: CandidateTable, o_index: int) -> RatioSample | None:
        """See Objective."""
        if self.ratio is None or len(table) <= self.ratio_spans:
            return None
        return RatioSample(
            self.ratio_spans, term=self.ratio, o_index=o_index, generator=self.generator
        )

    def _ratio_rows(self, table: CandidateTable, chosen: ChosenSpans) -> Tensor:
        if self.ratio is None:
            return chosen.rows[:0]
        if chosen.ratio is None:
            return torch.arange(len(table), device=chosen.rows.device)
        return chosen.ratio.rows

    def _confidence(self, batch: SpanBatch, rows: Tensor) -> Tensor | None:
        if not self.loss.needs_confidence:
            return None
        if batch.confidence is None:
            raise ValueError(Errors.R113.format(loss=type(self.loss).__name__))
        return batch.confidence(batch.table.spans_at(rows.cpu().numpy())).to(rows.device)
