"""A batch of examples as the span core sees it."""

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
import torch
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from torch import Tensor, nn

from ..candidates import BatchAnnotation, CandidateTable, annotate
from ..span.choosing import as_span_head, choose_spans
from ..span.samplers import UniformSampler
from ..span.scanning import score_in_blocks, without_dropout
from .targets import TargetReader


def annotate_examples(
    examples: Sequence[Example],
    table: CandidateTable,
    *,
    columns: Mapping[str, int],
    read_targets: TargetReader,
    flat: bool,
) -> BatchAnnotation:
    """What examples say about the candidates of their documents.

    examples (Sequence[Example]): The examples.
    table (CandidateTable): The candidates of their predicted documents.
    columns (Mapping[str, int]): The column of each label. Entities with other labels count as
        unlabeled.
    read_targets (TargetReader): Reads their annotation.
    flat (bool): A span that overlaps a labeled one is certainly no entity.
    RETURNS (BatchAnnotation): The annotation.
    """
    targets = [read_targets(example) for example in examples]
    gold = [
        (i, start, end, columns[label])
        for i, target in enumerate(targets)
        for start, end, label in target.entities
        if label in columns
    ]
    rejected = [
        (i, start, end) for i, target in enumerate(targets) for start, end, _ in target.rejected
    ]
    gold_columns = np.array(gold, dtype=np.int64).reshape(-1, 4).T
    rejected_columns = np.array(rejected, dtype=np.int64).reshape(-1, 3).T
    return annotate(
        table,
        doc_index=gold_columns[0],
        starts=gold_columns[1],
        ends=gold_columns[2],
        labels=gold_columns[3],
        missing=np.concatenate([target.missing for target in targets]),
        complete=np.array([target.complete for target in targets]),
        outside=np.concatenate([target.outside for target in targets]),
        rejected=(rejected_columns[0], rejected_columns[1], rejected_columns[2]),
        flat=flat,
    )


def doc_key(doc: Doc) -> int:
    """RETURNS (int): A number that is the same whenever the document comes back, on any machine."""
    return words_key(token.text for token in doc)


def words_key(words: Iterable[str]) -> int:
    """RETURNS (int): The number of a document with these words."""
    digest = blake2b("\0".join(words).encode("utf8"), digest_size=8).digest()
    return int.from_bytes(digest, "big")


def process_before(nlp: Language, name: str, docs: list[Doc]) -> list[Doc]:
    """Run the components before one, so that listeners of a shared encoder find its output.

    nlp (Language): The pipeline.
    name (str): The component to stop at.
    docs (List[Doc]): Unprocessed documents.
    RETURNS (List[Doc]): The documents.
    """
    for other, component in nlp.pipeline:
        if other == name:
            break
        docs = run_component(component, docs)
    return docs


def run_component(component: Any, docs: list[Doc]) -> list[Doc]:
    """RETURNS (List[Doc]): Documents that a component, or a plain function, has processed."""
    if hasattr(component, "pipe"):
        return list(component.pipe(docs))
    return [component(doc) for doc in docs]


@torch.no_grad()
def labeled_vectors(
    head: nn.Module,
    tokens: Tensor,
    table: CandidateTable,
    annotation: BatchAnnotation,
    *,
    chunk_size: int,
    o_index: int,
) -> tuple[Tensor, Tensor]:
    """Vectors of the labeled spans and of sampled negatives, without dropout.

    head (nn.Module): A span head.
    tokens (Tensor): Token vectors. Shape: (tokens, width).
    table (CandidateTable): The candidates.
    annotation (BatchAnnotation): What is known about them.
    chunk_size (int): The greatest number of candidates in memory at a time.
    o_index (int): Column of "no entity".
    RETURNS (Tuple[Tensor, Tensor]): Vectors and label columns. Shapes: (spans, hidden), (spans,).
    """
    chosen = choose_spans(
        head, tokens, table, annotation, UniformSampler(), budget=chunk_size, o_index=o_index
    )
    span_head = as_span_head(head)
    with without_dropout(head):
        output = score_in_blocks(span_head, span_head.prepare(tokens), chosen.starts, chosen.ends)
    return output.vectors, chosen.targets
