"""Training of the semi-Markov model: what is not known to be or not to be an entity is free."""

import torch
from torch import Tensor

from .choosing import as_span_head
from .objective import Objective, ScoredBatch, SpanBatch
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


class SegmentationObjective(Objective):
    """Spans compete for tokens."""

    def score(self, batch: SpanBatch) -> ScoredBatch:
        """Score all candidates, and compute the likelihood and the ratio term."""
        chosen, table, o_index = batch.chosen, batch.table, batch.o_index
        starts, ends = candidate_tensors(table.spans(), batch.tokens.device)
        output = score_with_gradient(
            as_span_head(batch.head), batch.tokens, starts, ends, chunk_size=self.chunk_size
        )
        n_positives = len(batch.annotation.positive_rows)
        grid = SegmentGrid.of(table, batch.tokens.device)
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
        term = None
        if self.ratio is not None:
            term = self.ratio.penalty(expected.sum() / max(1, table.n_tokens))
        return ScoredBatch(main, output.vectors[chosen.rows], term)

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
