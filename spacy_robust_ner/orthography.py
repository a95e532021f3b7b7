"""Where the writing of a corpus says that there are no entities.

Nobody has to annotate that a lower-case word between lower-case words is rarely a name: hardly any
label is in such a place. That is known for each kind of place, even if most labels are missing and
whichever words a dictionary lacks. In scripts without case nearly all words are in one kind of
place, which has labels, so that little is concluded.
"""

from collections import Counter
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc

from .annotation import missing_tokens

# Of the tokens of a kind of place, fewer than this share may be in entities.
_MAX_ENTITY_SHARE = 0.02
# Of the capitalized words after lower-case ones, fewer than this share are in entities where all
# nouns have a capital letter. In English it is about four in five.
_MIN_NAMES_SHARE = 1 / 3

UPPER, _LOWER, _DIGITS, _OTHER_LETTERS, _OTHER = "X", "x", "d", "a", "."
_BEGIN, _END = "^", "$"


@lru_cache(maxsize=65536)
def writing_of(word: str) -> str:
    """word (str): A token's text.
    RETURNS (str): One character that says how it is written: "X" with a capital letter, "x" in
        lower case, "a" with letters that have no case, "d" with digits and "." with neither.
    """
    for kind, is_kind in (
        (UPPER, str.isupper),
        (_LOWER, str.islower),
        (_OTHER_LETTERS, str.isalpha),
        (_DIGITS, str.isdigit),
    ):
        if any(map(is_kind, word)):
            return kind
    return _OTHER


def places_of(doc: Doc) -> list[str]:
    """RETURNS (List[str]): The kind of place of each token: its writing between that of its
    neighbours, as in "xXx".
    """
    writing = "".join((_BEGIN, *map(writing_of, [token.text for token in doc]), _END))
    return [writing[i : i + 3] for i in range(len(doc))]


class OrthographyStudy:
    """Counts in which kinds of places the labels of a corpus are."""

    def __init__(self) -> None:
        self._tokens: Counter[str] = Counter()
        self._labeled: Counter[str] = Counter()

    def add(self, doc: Doc) -> None:
        """doc (Doc): A document of the corpus."""
        places = places_of(doc)
        self._tokens.update(
            place for place, missing in zip(places, missing_tokens(doc), strict=True) if not missing
        )
        self._labeled.update(places[token.i] for ent in doc.ents for token in ent)

    @property
    def tokens(self) -> int:
        """RETURNS (int): Annotated tokens."""
        return self._tokens.total()

    def outside_places(self, coverage: float) -> dict[str, int]:
        """Find the kinds of places where there are next to no entities.

        coverage (float): The share of the entities that are labeled.
        RETURNS (Dict[str, int]): Their numbers of tokens, the most frequent first.
        """
        # One label more than there is, so that rare kinds are not judged by chance.
        return {
            place: tokens
            for place, tokens in self._tokens.most_common()
            if (self._labeled[place] + 1) / (coverage * tokens) < _MAX_ENTITY_SHARE
        }

    def capitals_mark_names(self, coverage: float) -> bool:
        """coverage (float): The share of the entities that are labeled.
        RETURNS (bool): Whether a capital letter that does not come from the start of a sentence
            says something; not so where most such words, as nouns in German, are in no entity.
        """
        after_lower = [place for place in self._tokens if place.startswith(_LOWER + UPPER)]
        tokens = sum(self._tokens[place] for place in after_lower)
        labeled = sum(self._labeled[place] for place in after_lower)
        return (labeled + 1) / coverage >= _MIN_NAMES_SHARE * tokens


def in_places(doc: Doc, places: frozenset[str]) -> NDArray[np.bool_]:
    """doc (Doc): A document.
    places (FrozenSet[str]): Kinds of places.
    RETURNS (NDArray[bool]): Its tokens in such places. Shape: (tokens,).
    """
    return np.array([place in places for place in places_of(doc)], dtype=bool)
