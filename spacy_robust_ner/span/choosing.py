"""Phase one of a training step: which spans of a batch are scored with gradient."""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from ..candidates import BatchAnnotation, CandidateTable
from ..errors import Errors
from ..types import NegativeSample, NegativeSampler, Projections, SamplerContext, SpanHead
from .ratio import RatioSample, RatioSubset
from .scanning import (
    RepresentationSimilarity,
    candidate_tensors,
    positive_anchor,
    scan,
    without_dropout,
)
from .selection import NegativeSelection


@dataclass(frozen=True)
class ChosenSpans:
    """The spans to score with gradient: first the positives, then the negatives, then those of
    the ratio term (which may repeat the others).

    rows (Tensor): Candidate rows. Shape: (spans,), as the next two.
    starts (Tensor): First token rows.
    ends (Tensor): One after the last token rows.
    targets (Tensor): Label columns of positives and negatives. Shape: (positives + negatives,).
    weights (Tensor): How many spans each positive (1) and negative stands for. Shape: as targets.
    negatives (NegativeSample): The negatives, for observers.
    ratio (Optional[RatioSubset]): The spans of the ratio term.
    """

    rows: Tensor
    starts: Tensor
    ends: Tensor
    targets: Tensor
    weights: Tensor
    negatives: NegativeSample
    ratio: RatioSubset | None

    @property
    def n_labelled(self) -> int:
        """RETURNS (int): Positives and negatives; the rest belongs to the ratio term."""
        return len(self.targets)


@torch.no_grad()
def choose_spans(
    head: nn.Module,
    tokens: Tensor,
    table: CandidateTable,
    annotation: BatchAnnotation,
    sampler: NegativeSampler,
    *,
    budget: int,
    o_index: int = 0,
    epoch: int = 0,
    max_epochs: int = 1,
    doc_keys: Sequence[int] | None = None,
    use_all_true_negatives: bool = False,
    ratio_sample: RatioSample | None = None,
) -> ChosenSpans:
    """Choose the spans of a training step. All candidates are scored, without gradient, if the
    sampler or the ratio term reads scores; otherwise none is. There is no dropout then, unless the
    sampler wants it and no ratio term is there to read the same scores.

    head (nn.Module): A span head.
    tokens (Tensor): Token vectors of the batch. Shape: (tokens, width).
    table (CandidateTable): The candidates.
    annotation (BatchAnnotation): What is known about them.
    sampler (NegativeSampler): Chooses the negatives.
    budget (int): The greatest number of candidates in memory at a time.
    o_index (int): Column of "no entity".
    epoch (int): Completed epochs.
    max_epochs (int): Epochs in all.
    doc_keys (Optional[Sequence[int]]): Stable numbers of the documents.
    use_all_true_negatives (bool): Take every span that is vouched for as a negative.
    ratio_sample (Optional[RatioSample]): Chooses spans for the ratio term.
    RETURNS (ChosenSpans): The spans to score.
    """
    scorer: SpanHead | None = None
    projections: Projections | None = None
    anchor = similarity = None
    device = tokens.device
    keeps_dropout = sampler.with_dropout and ratio_sample is None
    with nullcontext() if keeps_dropout else without_dropout(head):
        if sampler.needs_scores or sampler.needs_vectors or ratio_sample is not None:
            scorer = as_span_head(head)
            projections = scorer.prepare(tokens)
            if sampler.needs_vectors:
                anchor = positive_anchor(scorer, projections, table, annotation)
        if sampler.needs_similarity:
            similarity = RepresentationSimilarity.of(as_span_head(head), tokens, table, annotation)
            anchor = None if similarity is None else similarity.anchor
        context = SamplerContext(
            doc_lengths=torch.from_numpy(table.lengths).to(device),
            doc_candidates=torch.from_numpy(np.diff(table.doc_rows)).to(device),
            doc_keys=doc_keys,
            epoch=epoch,
            max_epochs=max_epochs,
            o_index=o_index,
            anchor=anchor,
        )
        selection = NegativeSelection(
            sampler, context, use_all_true_negatives=use_all_true_negatives
        )
        for spans in scan(
            table,
            annotation,
            budget=budget,
            device=device,
            head=scorer,
            projections=projections,
            with_vectors=sampler.needs_vectors,
            similarity=similarity,
        ):
            selection.add(spans)
            if ratio_sample is not None:
                ratio_sample.add(spans)
    negatives = selection.finish()
    ratio = None if ratio_sample is None else ratio_sample.finish()
    positives = torch.from_numpy(annotation.positive_rows).to(device)
    rows = torch.cat((positives, negatives.rows, *([] if ratio is None else [ratio.rows])))
    starts, ends = candidate_tensors(table.spans_at(rows.cpu().numpy()), device)
    labels = torch.from_numpy(annotation.positive_labels).to(device)
    return ChosenSpans(
        rows=rows,
        starts=starts,
        ends=ends,
        targets=torch.cat((labels, torch.full_like(negatives.rows, o_index))),
        weights=torch.cat((torch.ones(len(positives), device=device), negatives.weights)),
        negatives=negatives,
        ratio=ratio,
    )


def as_span_head(head: nn.Module) -> SpanHead:
    """RETURNS (SpanHead): The module, if it scores spans."""
    if not isinstance(head, SpanHead):
        raise TypeError(Errors.R112.format(head=type(head).__name__))
    return head
