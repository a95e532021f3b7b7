"""What training examples say, in the tokens of the documents that the model sees."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from spacy.attrs import ORTH
from spacy.tokens import Span
from spacy.training import Example

from ..annotation import is_complete, missing_tokens


@dataclass(frozen=True)
class EntityTargets:
    """The entity annotation of one example.

    entities (List[Tuple[int, int, str]]): Labeled spans, ends exclusive.
    rejected (List[Tuple[int, int, str]]): Spans that somebody looked at and rejected.
    missing (NDArray[bool]): Tokens whose annotation is missing. Shape: (tokens,).
    complete (bool): Whether every "O" can be trusted.
    """

    entities: list[tuple[int, int, str]]
    rejected: list[tuple[int, int, str]]
    missing: NDArray[np.bool_]
    complete: bool


def entity_targets(
    example: Example, *, rejected_spans_key: str, default_complete: bool
) -> EntityTargets:
    """Read the annotation of an example, aligned to its predicted tokens. A token that no gold
    token aligns with, and an entity that no predicted tokens make up, count as missing.

    example (Example): The example.
    rejected_spans_key (str): The span group of rejected spans.
    default_complete (bool): What a document without the flag counts as.
    RETURNS (EntityTargets): The annotation.
    """
    reference = example.reference
    complete = is_complete(reference, default=default_complete)
    rejected = reference.spans.get(rejected_spans_key, ())
    if _same_tokens(example):
        return EntityTargets(
            _triples(reference.ents),
            _triples(rejected),
            np.array(missing_tokens(reference), dtype=bool),
            complete,
        )
    entities = _triples(example.get_aligned_spans_y2x(reference.ents, allow_overlap=False))
    missing = np.array([tag is None for tag in example.get_aligned_ner()], dtype=bool)
    for start, end, _ in entities:
        missing[start:end] = False
    aligned = example.get_aligned_spans_y2x(rejected, allow_overlap=True)
    return EntityTargets(entities, _triples(aligned), missing, complete)


def _same_tokens(example: Example) -> bool:
    predicted, reference = example.predicted, example.reference
    return len(predicted) == len(reference) and bool(
        (predicted.to_array(ORTH) == reference.to_array(ORTH)).all()
    )


def _triples(spans: Iterable[Span]) -> list[tuple[int, int, str]]:
    return [(span.start, span.end, span.label_) for span in spans]
