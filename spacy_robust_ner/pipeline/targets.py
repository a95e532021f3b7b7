"""What training examples say, in the tokens of the documents that the model sees."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from spacy.attrs import ORTH
from spacy.tokens import Doc, Span
from spacy.training import Example

from ..annotation import REJECTED_SPANS_KEY, is_complete, missing_tokens
from ..fragments import find_fragments
from ..orthography import in_places
from ..surface_forms import Form


@dataclass(frozen=True)
class EntityTargets:
    """The entity annotation of one example.

    entities (List[Tuple[int, int, str]]): Labeled spans, ends exclusive.
    rejected (List[Tuple[int, int, str]]): Spans that somebody looked at and rejected.
    missing (NDArray[bool]): Tokens whose annotation is missing. Shape: (tokens,).
    complete (bool): Whether every "O" can be trusted.
    outside (NDArray[bool]): Tokens whose "O" can be trusted in any case. Shape: (tokens,).
    """

    entities: list[tuple[int, int, str]]
    rejected: list[tuple[int, int, str]]
    missing: NDArray[np.bool_]
    complete: bool
    outside: NDArray[np.bool_]


@dataclass(frozen=True)
class TargetReader:
    """Reads the annotation of examples, aligned to their predicted tokens. A token that no gold
    token aligns with, and an entity that no predicted tokens make up, count as missing.

    rejected_spans_key (str): The span group of rejected spans.
    default_complete (bool): What a document without the flag counts as.
    doubtful (Collection[Form]): Words, in folded case, whose labels count as missing in incomplete
        documents.
    without_fragments (bool): Labels that seem to be parts of longer names count as missing in
        incomplete documents, too.
    outside_places (FrozenSet[str]): Kinds of places (see orthography) where a token without a label
        is in no entity.
    """

    rejected_spans_key: str = REJECTED_SPANS_KEY
    default_complete: bool = False
    doubtful: Collection[Form] = ()
    without_fragments: bool = False
    outside_places: frozenset[str] = frozenset()

    def __call__(self, example: Example) -> EntityTargets:
        """example (Example): The example.
        RETURNS (EntityTargets): Its annotation.
        """
        reference = example.reference
        complete = is_complete(reference, default=self.default_complete)
        rejected = reference.spans.get(self.rejected_spans_key, ())
        if _same_tokens(example):
            entities = _triples(reference.ents)
            missing = np.array(missing_tokens(reference), dtype=bool)
        else:
            entities = _triples(example.get_aligned_spans_y2x(reference.ents, allow_overlap=False))
            missing = np.array([tag is None for tag in example.get_aligned_ner()], dtype=bool)
            for start, end, _ in entities:
                missing[start:end] = False
            rejected = example.get_aligned_spans_y2x(rejected, allow_overlap=True)
        if (self.doubtful or self.without_fragments) and not complete:
            entities = self._withdraw(entities, missing, example.predicted)
        outside = self._outside(entities, missing, example.predicted)
        return EntityTargets(entities, _triples(rejected), missing, complete, outside)

    def _is_doubtful(self, label: Span) -> bool:
        words = (token.text.casefold() for token in label)
        return bool(self.doubtful) and tuple(words) in self.doubtful

    def _outside(
        self, entities: list[tuple[int, int, str]], missing: NDArray[np.bool_], doc: Doc
    ) -> NDArray[np.bool_]:
        if not self.outside_places:
            return np.zeros(len(doc), dtype=bool)
        outside = in_places(doc, self.outside_places) & ~missing
        for start, end, _ in entities:
            outside[start:end] = False
        return outside

    def _withdraw(
        self, entities: list[tuple[int, int, str]], missing: NDArray[np.bool_], doc: Doc
    ) -> list[tuple[int, int, str]]:
        fragments = [False] * len(entities)
        if self.without_fragments:
            fragments = find_fragments(doc, [(start, end) for start, end, _ in entities])
        kept = []
        for (start, end, label), is_fragment in zip(entities, fragments, strict=True):
            if is_fragment or self._is_doubtful(doc[start:end]):
                missing[start:end] = True
            else:
                kept.append((start, end, label))
        return kept


def _same_tokens(example: Example) -> bool:
    predicted, reference = example.predicted, example.reference
    return len(predicted) == len(reference) and bool(
        (predicted.to_array(ORTH) == reference.to_array(ORTH)).all()
    )


def _triples(spans: Iterable[Span]) -> list[tuple[int, int, str]]:
    return [(span.start, span.end, span.label_) for span in spans]
