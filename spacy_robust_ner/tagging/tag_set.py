"""The tags of a token model, as numbers: which may follow which, and how they stand for entities.

Number 0 is "O". A tag set may hold one type more than there are labels, for spans that are known
to be no entities: it has tags of its own in training, and counts as "O" in decoding.
"""

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import Errors
from ..tags import OUTSIDE, get_scheme

SchemeName = Literal["bio", "bioes"]

OUTSIDE_TAG = 0
MISSING_TAG = -1
NON_ENTITY_TYPE = "NON"

_SCHEMES: dict[str, str] = {"bio": "iob2", "bioes": "bioes"}
_BEGIN, _INSIDE, _LAST, _SINGLE = range(4)


class Segments(NamedTuple):
    """Entities of a batch of documents.

    docs (NDArray[int64]): The document of each. Shape: (segments,), as all that follow.
    starts (NDArray[int64]): First token, counted in the document.
    ends (NDArray[int64]): One after the last token, counted likewise.
    types (NDArray[int64]): Number of the label.
    """

    docs: NDArray[np.int64]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    types: NDArray[np.int64]


class TagSet:
    """Tags of some labels in a scheme.

    labels (Sequence[str]): Labels of the entities; the position is the number of the type.
    scheme (str): "bio" or "bioes".
    with_non_entity (bool): Add the type NON, numbered after the labels.
    """

    def __init__(
        self,
        labels: Sequence[str],
        *,
        scheme: SchemeName = "bioes",
        with_non_entity: bool = False,
    ) -> None:
        if scheme not in _SCHEMES:
            raise ValueError(Errors.R150.format(scheme=scheme, known=", ".join(_SCHEMES)))
        if with_non_entity and NON_ENTITY_TYPE in labels:
            raise ValueError(Errors.R151.format(label=NON_ENTITY_TYPE))
        marks = get_scheme(_SCHEMES[scheme])
        self.labels = tuple(labels)
        self.scheme = scheme
        self.non_type = len(self.labels) if with_non_entity else None
        self.types = (*self.labels, NON_ENTITY_TYPE) if with_non_entity else self.labels
        prefixes = list(dict.fromkeys(marks))
        self.tags = (OUTSIDE, *(f"{mark}-{label}" for label in self.types for mark in prefixes))
        self.marks_ends = marks.last != marks.inside

        n_types, n_prefixes = len(self.types), len(prefixes)
        first = 1 + n_prefixes * np.arange(n_types)
        roles = np.array([prefixes.index(mark) for mark in marks])
        # Tags of each type as begin, inside, last and single.
        self.role_tags: NDArray[np.int64] = first[:, None] + roles
        self.tag_types: NDArray[np.int64] = np.full(len(self.tags), -1)
        self.tag_types[1:] = np.repeat(np.arange(n_types), n_prefixes)
        self.is_entity = (self.tag_types >= 0) & (self.tag_types < len(self.labels))
        self._set_constraints()

    def _set_constraints(self) -> None:
        begins, continues = self._flag(_BEGIN, _SINGLE), self._flag(_INSIDE, _LAST)
        may_go_on = self._flag(_BEGIN, _INSIDE)
        fresh = begins.copy()
        fresh[OUTSIDE_TAG] = True
        must_go_on = may_go_on & self.marks_ends
        same_type = self.tag_types[:, None] == self.tag_types
        self._continues = continues
        self._may_go_on = may_go_on
        self.allowed_start: NDArray[np.bool_] = fresh
        self.allowed_end: NDArray[np.bool_] = ~must_go_on
        self.allowed_transitions: NDArray[np.bool_] = (
            may_go_on[:, None] & continues & same_type
        ) | (~must_go_on[:, None] & fresh)

    def _flag(self, *roles: int) -> NDArray[np.bool_]:
        flags = np.zeros(len(self.tags), dtype=bool)
        flags[self.role_tags[:, roles].ravel()] = True
        return flags

    def __len__(self) -> int:
        return len(self.tags)

    def encode(
        self, spans: Iterable[tuple[int, int, int]], length: int, *, missing: Iterable[int] = ()
    ) -> NDArray[np.int64]:
        """Turn spans into tags.

        spans (Iterable[Tuple[int, int, int]]): Start, end and type of entities that don't overlap.
        length (int): How many tokens there are.
        missing (Iterable[int]): Tokens without annotation.
        RETURNS (NDArray[int64]): A tag a token, MISSING_TAG for missing. Shape: (tokens,).
        """
        tags = np.full(length, OUTSIDE_TAG, dtype=np.int64)
        tags[list(missing)] = MISSING_TAG
        for start, end, type_number in spans:
            roles = self.role_tags[type_number]
            if end - start == 1:
                tags[start] = roles[_SINGLE]
                continue
            tags[start] = roles[_BEGIN]
            tags[start + 1 : end - 1] = roles[_INSIDE]
            tags[end - 1] = roles[_LAST]
        return tags

    def decode(self, tags: NDArray[np.int64], lengths: NDArray[np.int64]) -> Segments:
        """Turn the tags of a batch into entities. Tags that break the scheme's order are read as
        the usual scorers do: whatever can't continue an entity starts one. The type NON is no
        entity.

        tags (NDArray[int64]): The tags of all documents, one after another. Shape: (tokens,).
        lengths (NDArray[int64]): Tokens a document. Shape: (documents,).
        RETURNS (Segments): The entities, in order.
        """
        types = self.tag_types[tags]
        docs = np.repeat(np.arange(len(lengths)), lengths)
        goes_on = np.zeros(len(tags), dtype=bool)
        goes_on[1:] = (
            (types[1:] >= 0)
            & (types[1:] == types[:-1])
            & (docs[1:] == docs[:-1])
            & self._continues[tags[1:]]
            & self._may_go_on[tags[:-1]]
        )
        typed = types >= 0
        ended = typed.copy()
        ended[:-1] &= ~goes_on[1:]
        starts, ends = np.flatnonzero(typed & ~goes_on), np.flatnonzero(ended) + 1
        entities = self.is_entity[tags[starts]]
        starts, ends = starts[entities], ends[entities]
        offsets = (np.cumsum(lengths) - lengths)[docs[starts]]
        return Segments(docs[starts], starts - offsets, ends - offsets, types[starts])
