"""Training of the semi-Markov model: what is not known to be or not to be an entity is free."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..candidates import BatchAnnotation, CandidateTable
from ..types import NegativeSampler
from .choosing import as_span_head, choose_spans
from .contrastive import ContrastiveTerm
from .objective import BatchTerms, ConfidenceReader, Course
from .ratio import RatioTerm
from .scanning import candidate_tensors, score_with_gradient
from .segmentation import (
    SegmentGrid,
    entity_scores,
    log_partition,
    partial_likelihood,
    partition_and_expectation,
)


class SegmentationLikelihood:
    """A loss block: the likelihood of all segmentations of a document that agree with what is
    known. Labelled spans are entities, sampled negatives and true negatives are none, and the rest
    is summed over. With all candidates as negatives it is the likelihood of the annotation."""

    needs_uniform_negatives = False
    needs_confidence = False


@dataclass
class SegmentationObjective:
    """The settings of training, and the objective that follows from them.

    sampler (NegativeSampler): Chooses the spans that are taken for no entities.
    contrastive (Optional[ContrastiveTerm]): The contrastive term.
    ratio (Optional[RatioTerm]): The expected-ratio term.
    use_all_true_negatives (bool): Take every span that is vouched for as no entity.
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
        """Choose negatives and compute the loss of a batch; see SpanObjective."""
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
        )
        starts, ends = candidate_tensors(table.spans(), tokens.device)
        output = score_with_gradient(
            as_span_head(head), tokens, starts, ends, chunk_size=self.chunk_size
        )
        n_positives = len(annotation.positive_rows)
        grid = SegmentGrid.of(table, tokens.device)
        partition, expected = self._partition(grid, entity_scores(output.logits, o_index))
        agreeing = partial_likelihood(
            output.logits,
            grid,
            positive=chosen.rows[:n_positives],
            targets=chosen.targets[:n_positives],
            negative=chosen.negatives.rows,
            o_index=o_index,
        )
        main = (partition - agreeing).sum() / max(1, len(table.lengths))
        total, terms = main, {"spans": main.detach()}
        vectors = output.vectors[chosen.rows]
        if self.contrastive is not None:
            term = self.contrastive(vectors, chosen.targets, o_index=o_index)
            total = self.contrastive.combine(main, term)
            terms["contrastive"] = (self.contrastive.weight * term).detach()
            terms["spans"] = total.detach() - terms["contrastive"]
        if self.ratio is not None:
            term = self.ratio.penalty(expected.sum(), n_tokens=table.n_tokens)
            total = total + term
            terms["ratio"] = term.detach()
        return BatchTerms(total, terms, chosen, vectors.detach())

    def _partition(self, grid: SegmentGrid, scores: Tensor) -> tuple[Tensor, Tensor]:
        """RETURNS (Tuple[Tensor, Tensor]): Log-partition, and expected entities if the ratio term
        asks for them. Shapes: (documents,), (documents,).
        """
        segments = grid.pad(scores.logsumexp(1))
        outside = segments.new_zeros(segments.shape[:2])
        if self.ratio is None:
            partition = log_partition(segments, outside)[:, -1]
            return partition, torch.zeros_like(partition)
        widths = torch.arange(grid.n_widths, device=segments.device)
        sizes = self.ratio.sizes(torch.zeros_like(widths), widths + 1)
        return partition_and_expectation(segments, outside, sizes.to(segments.dtype))
