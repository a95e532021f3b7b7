"""Precision, recall and F1 of entities, also between different tokenisations of one text.

Spans are compared by the characters that are not whitespace, so gold tokens and ours need not be
the same. A predicted span that touches a token with missing gold annotation is not judged, as in
spaCy's own scorer.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from spacy.scorer import PRFScore
from spacy.tokens import Doc

from ..annotation import missing_tokens

Mention = tuple[int, int, str]


@dataclass(frozen=True, slots=True)
class GoldDocument:
    """The gold annotation of a document, independent of its tokens.

    text (str): The text without whitespace.
    mentions (FrozenSet[Mention]): The entities as (start, end, label) in that text.
    missing (FrozenSet[int]): Positions in that text whose annotation is missing.
    """

    text: str
    mentions: frozenset[Mention]
    missing: frozenset[int]

    @classmethod
    def from_doc(cls, doc: Doc) -> "GoldDocument":
        """doc (Doc): An annotated document.
        RETURNS (GoldDocument): Its annotation.
        """
        words = dense_words(token.text for token in doc)
        offsets = dense_offsets(words)
        mentions = ((offsets[e.start], offsets[e.end], e.label_) for e in doc.ents)
        missing = (
            position
            for token, is_missing in enumerate(missing_tokens(doc))
            if is_missing
            for position in range(offsets[token], offsets[token + 1])
        )
        return cls("".join(words), frozenset(mentions), frozenset(missing))

    @property
    def is_annotated(self) -> bool:
        """RETURNS (bool): Whether any token is annotated."""
        return len(self.missing) < len(self.text)


@dataclass
class Agreement:
    """Counts of true and false positives and negatives, overall and by label.

    documents (int): Documents with gold annotation.
    not_judged (int): Predicted spans that touch missing gold annotation.
    """

    documents: int = 0
    not_judged: int = 0
    overall: PRFScore = field(default_factory=PRFScore)
    labels: defaultdict[str, PRFScore] = field(default_factory=lambda: defaultdict(PRFScore))

    def add(self, predicted: Iterable[Mention], gold: GoldDocument) -> None:
        """predicted (Iterable[Mention]): The predicted spans of a document.
        gold (GoldDocument): The document's gold annotation.
        """
        if not gold.is_annotated:
            return
        self.documents += 1
        judged = set()
        for mention in predicted:
            if gold.missing and not gold.missing.isdisjoint(range(mention[0], mention[1])):
                self.not_judged += 1
            else:
                judged.add(mention)
        self.overall.score_set(judged, set(gold.mentions))
        for label in {mention[2] for mention in judged | gold.mentions}:
            self.labels[label].score_set(
                {mention for mention in judged if mention[2] == label},
                {mention for mention in gold.mentions if mention[2] == label},
            )

    def to_dict(self) -> dict[str, Any]:
        """RETURNS (Dict[str, Any]): The scores from 0 to 1, with the counts behind them."""
        return {
            "documents": self.documents,
            "not_judged": self.not_judged,
            "overall": _scores(self.overall),
            "labels": {label: _scores(self.labels[label]) for label in sorted(self.labels)},
        }


def dense_words(words: Iterable[str]) -> list[str]:
    """RETURNS (List[str]): The words without any whitespace in them."""
    return ["".join(word.split()) for word in words]


def dense_offsets(words: Iterable[str]) -> list[int]:
    """RETURNS (List[int]): Where each word starts in the joined text, and where the last ends."""
    return list(accumulate(map(len, words), initial=0))


def _scores(score: PRFScore) -> dict[str, float]:
    counts = {"true_positives": score.tp, "false_positives": score.fp, "false_negatives": score.fn}
    # PRFScore keeps divisions by zero away with a tiny summand; figures of nothing are zero here.
    right = {"p": score.precision, "r": score.recall, "f": score.fscore}
    return {**{name: round(value, 6) for name, value in right.items()}, **counts}
