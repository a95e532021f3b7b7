"""From label probabilities of candidate spans to entities."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from .errors import Errors

Ints = NDArray[np.int64]
Floats = NDArray[np.floating]

Overlap = Literal["flat", "nested", "all"]


@dataclass(frozen=True)
class ScoredSpans:
    """Spans with a label and a score.

    starts (Ints): First tokens. Shape: (spans,), as all that follow.
    ends (Ints): One after the last tokens.
    labels (Ints): Label columns.
    scores (Floats): Their probabilities.
    """

    starts: Ints
    ends: Ints
    labels: Ints
    scores: Floats

    def __len__(self) -> int:
        return len(self.starts)

    def take(self, indices: Ints | slice, *, offset: int = 0) -> "ScoredSpans":
        """indices (Union[Ints, slice]): Which spans.
        offset (int): Subtracted from their tokens.
        RETURNS (ScoredSpans): These spans.
        """
        return ScoredSpans(
            self.starts[indices] - offset,
            self.ends[indices] - offset,
            self.labels[indices],
            self.scores[indices],
        )


def join(parts: Sequence[ScoredSpans]) -> ScoredSpans:
    """RETURNS (ScoredSpans): The spans of all parts; none if there are no parts."""
    ints = np.empty(0, dtype=np.int64)
    return ScoredSpans(
        np.concatenate([ints, *(part.starts for part in parts)]),
        np.concatenate([ints, *(part.ends for part in parts)]),
        np.concatenate([ints, *(part.labels for part in parts)]),
        np.concatenate([part.scores for part in parts] or [np.empty(0, dtype=np.float32)]),
    )


def find_entities(
    starts: Ints,
    ends: Ints,
    probs: Floats,
    *,
    o_index: int,
    threshold: float = 0.0,
    must_beat_outside: bool = True,
) -> ScoredSpans:
    """The spans that the model takes for entities, whether they overlap or not.

    starts (Ints): First token rows. Shape: (spans,).
    ends (Ints): One after the last token rows. Shape: (spans,).
    probs (Floats): Label probabilities. Shape: (spans, labels).
    o_index (int): Column of "no entity".
    threshold (float): The least probability of an entity.
    must_beat_outside (bool): The label has to be more probable than "no entity". Without it the
        threshold alone decides, so that one below 0.5 finds more entities.
    RETURNS (ScoredSpans): The entities, with their most probable label.
    """
    if probs.shape[1] < 2 or not len(probs):
        return join([])
    entity_probs = probs.copy()
    entity_probs[:, o_index] = -np.inf
    labels = entity_probs.argmax(1)
    scores = entity_probs[np.arange(len(labels)), labels]
    found = scores >= threshold
    if must_beat_outside:
        found &= scores > probs[:, o_index]
    return ScoredSpans(starts, ends, labels, scores).take(np.flatnonzero(found))


def resolve_overlap(spans: ScoredSpans, *, overlap: Overlap, n_tokens: int) -> ScoredSpans:
    """Choose greedily: the most probable spans first, of equal ones the longer, then the earlier.

    spans (ScoredSpans): Entities, with token rows of the batch.
    overlap (str): "flat" keeps what shares no token with a better span, "nested" what does not
        cross one, "all" everything.
    n_tokens (int): Tokens in the batch.
    RETURNS (ScoredSpans): The spans that stay, by start and end.
    """
    if overlap not in ("flat", "nested", "all"):
        raise ValueError(
            Errors.R105.format(name="overlap", value=overlap, choices="flat, nested, all")
        )
    chosen = np.arange(len(spans))
    if overlap != "all":
        best_first = np.lexsort((spans.starts, spans.starts - spans.ends, -spans.scores))
        keep = _without_overlap if overlap == "flat" else _without_crossing
        chosen = best_first[keep(spans.starts[best_first], spans.ends[best_first], n_tokens)]
    return spans.take(chosen[np.lexsort((spans.ends[chosen], spans.starts[chosen]))])


def by_document(spans: ScoredSpans, doc_starts: Ints) -> list[ScoredSpans]:
    """Split the spans of a batch.

    spans (ScoredSpans): Spans with token rows of the batch, sorted by start.
    doc_starts (Ints): First token row of each document, and the end. Shape: (documents + 1,).
    RETURNS (List[ScoredSpans]): For each document its spans, with tokens counted in it.
    """
    bounds = np.searchsorted(spans.starts, doc_starts)
    return [
        spans.take(slice(low, high), offset=int(offset))
        for low, high, offset in zip(bounds[:-1], bounds[1:], doc_starts[:-1], strict=True)
    ]


def _without_overlap(starts: Ints, ends: Ints, n_tokens: int) -> list[int]:
    taken = bytearray(n_tokens)
    kept = []
    for i, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        if not any(taken[start:end]):
            taken[start:end] = b"\x01" * (end - start)
            kept.append(i)
    return kept


def _without_crossing(starts: Ints, ends: Ints, n_tokens: int) -> list[int]:
    # For each border between tokens, the longest kept span that starts or that ends there.
    last_end = list(range(n_tokens + 1))
    first_start = list(range(n_tokens + 1))
    kept = []
    for i, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        crosses = any(
            last_end[border] > end or first_start[border] < start
            for border in range(start + 1, end)
        )
        if not crosses:
            last_end[start] = max(last_end[start], end)
            first_start[end] = min(first_start[end], start)
            kept.append(i)
    return kept
