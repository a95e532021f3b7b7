"""Documents that occur in more than one part of a corpus, such as training and test data."""

from array import array
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from spacy.tokens import Doc

from .draws import stable_hash


class Fingerprints:
    """The token sequences of a corpus as hashes: 16 bytes a document."""

    def __init__(self) -> None:
        self._exact: array[int] = array("Q")
        self._folded: array[int] = array("Q")

    def add(self, doc: Doc) -> None:
        """doc (Doc): The next document."""
        self._exact.append(fingerprint(doc))
        self._folded.append(fingerprint(doc, fold_case=True))

    def hashes(self, *, fold_case: bool = False) -> np.ndarray:
        """RETURNS (ndarray): One hash a document, in the order of the corpus."""
        return np.frombuffer(self._folded if fold_case else self._exact, dtype=np.uint64)

    def repeated(self) -> int:
        """RETURNS (int): Documents whose tokens an earlier document of the same corpus has."""
        return len(self._exact) - len(np.unique(self.hashes()))


def fingerprint(doc: Doc, *, fold_case: bool = False) -> int:
    """RETURNS (int): A hash of the document's tokens, whatever the space between them."""
    words = (token.text for token in doc)
    return stable_hash(*(map(str.casefold, words) if fold_case else words))


@dataclass
class Overlap:
    """How much of two parts of a corpus is the same.

    first, second (str): The names of the parts.
    first_documents (int): Documents of the first part whose tokens the second part has, too.
    second_documents (int): The other way round.
    first_share, second_share (float): The same as shares of the parts.
    folded_second_documents (int): As second_documents, if upper and lower case are the same.
    folded_second_share (float): The same as a share.
    """

    first: str
    second: str
    first_documents: int
    first_share: float
    second_documents: int
    second_share: float
    folded_second_documents: int
    folded_second_share: float

    def as_dict(self) -> dict[str, Any]:
        """RETURNS (Dict[str, Any]): JSON-serializable."""
        return asdict(self)


def find_overlap(first: str, a: Fingerprints, second: str, b: Fingerprints) -> Overlap:
    """Compare two parts of a corpus.

    first (str): The name of one part.
    a (Fingerprints): Its fingerprints.
    second (str): The name of the other part.
    b (Fingerprints): Its fingerprints.
    RETURNS (Overlap): The counts.
    """
    in_second = int(np.isin(a.hashes(), b.hashes()).sum())
    in_first = int(np.isin(b.hashes(), a.hashes()).sum())
    folded = int(np.isin(b.hashes(fold_case=True), a.hashes(fold_case=True)).sum())
    size_a, size_b = max(len(a.hashes()), 1), max(len(b.hashes()), 1)
    return Overlap(
        first,
        second,
        first_documents=in_second,
        first_share=in_second / size_a,
        second_documents=in_first,
        second_share=in_first / size_b,
        folded_second_documents=folded,
        folded_second_share=folded / size_b,
    )
