"""Predictions onto documents: entities, span groups, and a probability for each."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc, Span, SpanGroup

from ..candidates import Candidates, CandidateTable
from ..decoding import Overlap, ScoredSpans, resolve_overlap

SCORE_EXTENSION = "entity_score"

if not Span.has_extension(SCORE_EXTENSION):
    Span.set_extension(SCORE_EXTENSION, default=None)


def write_entities(
    doc: Doc, found: ScoredSpans, labels: Sequence[str], *, overwrite: bool = False
) -> None:
    """Set ``doc.ents``, and ``ent._.entity_score`` of each entity.

    doc (Doc): The document.
    found (ScoredSpans): Entities of the document, which may overlap.
    labels (Sequence[str]): The name of each label column.
    overwrite (bool): Replace entities that are there already, instead of filling the gaps.
    """
    earlier = list(doc.ents)
    if overwrite:
        # A score belongs to a place in the text and would outlive the entity.
        for ent in earlier:
            if ent._.get(SCORE_EXTENSION) is not None:
                ent._.set(SCORE_EXTENSION, None)
        earlier = []
    taken = np.zeros(len(doc), dtype=bool)
    for ent in earlier:
        taken[ent.start : ent.end] = True
    before = np.concatenate(([0], np.cumsum(taken)))
    free = np.flatnonzero(before[found.starts] == before[found.ends])
    chosen = resolve_overlap(found.take(free), overlap="flat", n_tokens=len(doc))
    new = _spans(doc, chosen, labels)
    doc.set_ents([*earlier, *new])
    for span, score in zip(new, chosen.scores.tolist(), strict=True):
        span._.set(SCORE_EXTENSION, score)


def write_spans(
    doc: Doc, found: ScoredSpans, labels: Sequence[str], *, key: str, overlap: Overlap
) -> None:
    """Set a span group with its scores in ``attrs["scores"]``.

    doc (Doc): The document.
    found (ScoredSpans): Entities of the document, which may overlap.
    labels (Sequence[str]): The name of each label column.
    key (str): The name of the group.
    overlap (str): Which overlaps are kept: "flat", "nested" or "all".
    """
    chosen = resolve_overlap(found, overlap=overlap, n_tokens=len(doc))
    group = SpanGroup(doc, name=key, spans=_spans(doc, chosen, labels))
    group.attrs["scores"] = np.asarray(chosen.scores, dtype=np.float32)
    doc.spans[key] = group


def write_candidates(
    docs: Sequence[Doc],
    scored: Iterable[tuple[Candidates, NDArray[np.float32]]],
    table: CandidateTable,
    labels: Sequence[str],
    *,
    key: str,
) -> None:
    """Write every candidate of a batch with the probability of each label.

    docs (Sequence[Doc]): The documents.
    scored (Iterable[Tuple[Candidates, NDArray]]): Candidates in row order, with probabilities.
    table (CandidateTable): The candidates.
    labels (Sequence[str]): The name of each label column.
    key (str): The span group to write.
    """
    chunks = list(scored)
    probs = np.concatenate([np.empty((0, len(labels)), np.float32), *(p for _, p in chunks)])
    for index, doc in enumerate(docs):
        first, last = int(table.doc_rows[index]), int(table.doc_rows[index + 1])
        own = table.spans(first, last)
        offset = int(table.doc_starts[index])
        found = ScoredSpans(
            own.starts - offset, own.ends - offset, probs[first:last].argmax(1), probs[first:last]
        )
        group = SpanGroup(doc, name=key, spans=_spans(doc, found, labels))
        group.attrs["scores"] = probs[first:last]
        group.attrs["labels"] = list(labels)
        doc.spans[key] = group


def _spans(doc: Doc, spans: ScoredSpans, labels: Sequence[str]) -> list[Span]:
    return [
        Span(doc, start, end, labels[label])
        for start, end, label in zip(
            spans.starts.tolist(), spans.ends.tolist(), spans.labels.tolist(), strict=True
        )
    ]
