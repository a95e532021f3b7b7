"""Labels that seem to be parts of longer names.

A list of first names labels "Jean" in "Jean Dupont", and a model that believes it learns to stop
there. Such a label gives itself away: the word beside it is written like a name as well, and has no
label. Only scripts with upper and lower case tell.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from spacy.tokens import Doc

from .orthography import UPPER, writing_of

_MAX_EXAMPLES = 20
_ENDS_SENTENCE = frozenset('.!?:…"“”«»')


def find_fragments(doc: Doc, labeled: Sequence[tuple[int, int]]) -> list[bool]:
    """Tell which labels may be parts of longer names.

    doc (Doc): The document.
    labeled (Sequence[Tuple[int, int]]): First token and end of each label.
    RETURNS (List[bool]): For each label, whether an unlabeled word beside it goes on with it.
    """
    taken = {i for start, end in labeled for i in range(start, end)}

    def goes_on(border: int, neighbour: int) -> bool:
        return (
            0 <= neighbour < len(doc)
            and neighbour not in taken
            and writing_of(doc[border].text) == UPPER
            and is_capitalized(doc[neighbour].text)
        )

    return [
        goes_on(end - 1, end) or (goes_on(start, start - 1) and not _opens_sentence(doc, start - 1))
        for start, end in labeled
    ]


@dataclass
class FragmentCount:
    """Counts the labels of documents that seem to be parts of longer names.

    labels (int): Their number.
    examples (List[str]): The first of them, in brackets between the words before and after.
    """

    labels: int = 0
    examples: list[str] = field(default_factory=list)

    def add(self, doc: Doc) -> None:
        """doc (Doc): A labeled document."""
        bounds = [(ent.start, ent.end) for ent in doc.ents]
        for (start, end), is_fragment in zip(bounds, find_fragments(doc, bounds), strict=True):
            if not is_fragment:
                continue
            self.labels += 1
            if len(self.examples) < _MAX_EXAMPLES:
                before, after = doc[max(0, start - 1) : start].text, doc[end : end + 1].text
                self.examples.append(f"{before} [{doc[start:end].text}] {after}".strip())


@lru_cache(maxsize=65536)
def is_capitalized(word: str) -> bool:
    """word (str): A token's text.
    RETURNS (bool): Whether a name is written like this: with a capital letter, but not in capital
        letters throughout, as words in headlines are, too.
    """
    n_upper = sum(char.isupper() for char in word)
    has_digit, has_lower = any(map(str.isdigit, word)), any(map(str.islower, word))
    return not has_digit and (n_upper == 1 or (n_upper > 1 and has_lower))


def _opens_sentence(doc: Doc, i: int) -> bool:
    """RETURNS (bool): Whether a token may have its capital letter from its place."""
    return i == 0 or set(doc[i - 1].text) <= _ENDS_SENTENCE
