"""Span vectors in two dimensions: how far a model keeps labels apart from each other, and from
spans that are no entities (Si et al. 2022, figure 4).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import minibatch
from thinc.api import xp2torch

from ..candidates import CandidateTable
from ..errors import Errors
from ..pipeline.robust_pipe import OUTSIDE
from ..pipeline.span_batch import process_before
from ..pipeline.span_ner import RobustSpanNER
from ..span.choosing import as_span_head
from ..span.scanning import candidate_tensors, score_in_blocks, without_dropout
from .evaluation import bare_copy

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SPANS = 2000


@dataclass(frozen=True)
class SpanVectors:
    """Spans of a corpus.

    vectors (NDArray): Their vectors. Shape: (spans, hidden).
    labels (List[str]): Their labels, "O" for spans that are no entities.
    texts (List[str]): What they say.
    """

    vectors: Floats
    labels: list[str]
    texts: list[str]


@dataclass(frozen=True)
class Projection:
    """Span vectors in a plane. The vectors have length one before, because what training and
    retrieval compare are their angles.

    points (NDArray): Coordinates. Shape: (spans, 2).
    explained (Tuple[float, float]): The share of the variance along each axis.
    labels (List[str]): The spans' labels.
    texts (List[str]): The spans' texts.
    within (float): Mean cosine of two entities with the same label.
    between (float): Mean cosine of two entities with different labels; NaN with a single label.
    to_outside (float): Mean cosine of an entity and a span that is none.
    """

    points: Floats
    explained: tuple[float, float]
    labels: list[str]
    texts: list[str]
    within: float
    between: float
    to_outside: float

    def as_dict(self) -> dict[str, Any]:
        """RETURNS (Dict[str, Any]): The figures, for JSON."""
        return {
            "explained": list(self.explained),
            "within": _number(self.within),
            "between": _number(self.between),
            "to_outside": _number(self.to_outside),
            "spans": [
                {"text": text, "label": label, "x": x, "y": y}
                for text, label, (x, y) in zip(
                    self.texts, self.labels, self.points.tolist(), strict=True
                )
            ],
        }


def collect_span_vectors(
    nlp: Language,
    pipe: RobustSpanNER,
    docs: Iterable[Doc],
    *,
    spans: int = SPANS,
    seed: int = 0,
    batch_size: int = 32,
) -> SpanVectors:
    """Read the vectors of the entities of a corpus, and of as many other spans.

    nlp (Language): A trained pipeline.
    pipe (RobustSpanNER): Its component.
    docs (Iterable[Doc]): Documents with all entities.
    spans (int): How many spans at most; half of them are entities, the first of the corpus.
    seed (int): Seed of the choice of the others.
    batch_size (int): Documents a batch.
    RETURNS (SpanVectors): The vectors.
    """
    if spans < 2:
        raise ValueError(Errors.R086.format(option="spans", value=spans, minimum=2))
    rng = np.random.default_rng(seed)
    vectors: list[Floats] = []
    labels: list[str] = []
    texts: list[str] = []
    room = spans // 2
    for batch in minibatch((doc for doc in docs if len(doc)), batch_size):
        table = CandidateTable([len(doc) for doc in batch], max_width=pipe.max_width)
        known, entities = _entities(batch, table)
        entities = entities[:room]
        others = np.setdiff1d(np.arange(len(table)), known)
        others = rng.choice(others, min(len(entities), len(others)), replace=False)
        rows = np.array([row for row, _ in entities] + others.tolist(), dtype=np.int64)
        vectors.append(_vectors(nlp, pipe, batch, table, rows))
        labels += [label for _, label in entities] + [OUTSIDE] * len(others)
        texts += _texts(batch, table, rows)
        room -= len(entities)
        if not room:
            break
    if not labels:
        raise ValueError(Errors.R224)
    return SpanVectors(np.concatenate(vectors), labels, texts)


def project(spans: SpanVectors) -> Projection:
    """Project vectors to the two directions in which they differ most (PCA).

    spans (SpanVectors): The vectors.
    RETURNS (Projection): Their coordinates.
    """
    length = np.linalg.norm(spans.vectors, axis=1, keepdims=True)
    unit = spans.vectors / np.maximum(length, 1e-12)
    centred = unit - unit.mean(axis=0)
    _, sizes, axes = np.linalg.svd(centred, full_matrices=False)
    axes, variance = axes[:2], sizes**2
    # The sign of an axis is arbitrary: its largest entry shall be positive.
    axes = axes * np.sign(axes[np.arange(len(axes)), np.abs(axes).argmax(axis=1)])[:, None]
    points = np.zeros((len(unit), 2))
    points[:, : len(axes)] = centred @ axes.T
    shares = [*(variance / max(variance.sum(), 1e-12)), 0.0, 0.0]
    within, between, to_outside = _cosines(unit, np.array(spans.labels))
    return Projection(
        points=points,
        explained=(float(shares[0]), float(shares[1])),
        labels=spans.labels,
        texts=spans.texts,
        within=within,
        between=between,
        to_outside=to_outside,
    )


def _cosines(unit: Floats, labels: NDArray[np.str_]) -> tuple[float, float, float]:
    """RETURNS (Tuple[float, float, float]): Mean cosines within labels, between labels, and of
    entities to other spans. From sums, as the mean of all pairs is a product of sums.
    """
    names = [name for name in np.unique(labels) if name != OUTSIDE]
    sums = {name: unit[labels == name].sum(axis=0) for name in (*names, OUTSIDE)}
    counts = {name: int((labels == name).sum()) for name in (*names, OUTSIDE)}
    within = sum(float(sums[name] @ sums[name]) - counts[name] for name in names)
    n_within = sum(counts[name] * (counts[name] - 1) for name in names)
    entities = sum((sums[name] for name in names), np.zeros(unit.shape[1]))
    n_entities = sum(counts[name] for name in names)
    everything = float(entities @ entities) - n_entities
    n_between = n_entities * (n_entities - 1) - n_within
    n_outside = n_entities * counts[OUTSIDE]
    return (
        within / n_within if n_within else np.nan,
        (everything - within) / n_between if n_between else np.nan,
        float(entities @ sums[OUTSIDE]) / n_outside if n_outside else np.nan,
    )


def _entities(docs: Sequence[Doc], table: CandidateTable) -> tuple[Ints, list[tuple[int, str]]]:
    found = [(i, ent.start, ent.end, ent.label_) for i, doc in enumerate(docs) for ent in doc.ents]
    columns = np.array([span[:3] for span in found], dtype=np.int64).reshape(-1, 3).T
    rows = table.rows_of(columns[0], columns[1], columns[2])
    labeled = zip(rows.tolist(), (span[3] for span in found), strict=True)
    return rows, [(row, label) for row, label in labeled if row >= 0]


@torch.no_grad()
def _vectors(
    nlp: Language, pipe: RobustSpanNER, docs: Sequence[Doc], table: CandidateTable, rows: Ints
) -> Floats:
    processed = process_before(nlp, pipe.name, [bare_copy(doc, nlp) for doc in docs])
    tokens = xp2torch(pipe.model.ops.flatten(pipe.model.predict(processed)))
    starts, ends = candidate_tensors(table.spans_at(rows), tokens.device)
    head = as_span_head(pipe.head)
    with without_dropout(pipe.head):
        output = score_in_blocks(head, head.prepare(tokens), starts, ends)
    vectors: Floats = output.vectors.cpu().numpy().astype(np.float64)
    return vectors


def _texts(docs: Sequence[Doc], table: CandidateTable, rows: Ints) -> Iterator[str]:
    spans = table.spans_at(rows)
    offsets = table.doc_starts[spans.doc_index]
    for i, start, end in zip(
        spans.doc_index, spans.starts - offsets, spans.ends - offsets, strict=True
    ):
        yield docs[i][start:end].text


def _number(value: float) -> float | None:
    return None if np.isnan(value) else value
