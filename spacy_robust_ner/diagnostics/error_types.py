"""What became of each entity of a document: found, missed, or found in a wrong way."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from .results import Entity, Prediction

Kind = Literal[
    "correct",
    "missed",
    "spurious",
    "wrong label",
    "wrong boundaries",
    "recovered",
    "not recovered",
]
# What there is to see in an error browser, with what it means.
KINDS: dict[Kind, str] = {
    "missed": "a true entity that was not found",
    "spurious": "found, but no entity",
    "wrong label": "the right words with a wrong label",
    "wrong boundaries": "overlaps a true entity, but has other boundaries",
    "recovered": "training text: had lost its label and was found all the same",
    "not recovered": "training text: had lost its label and was not found",
}


@dataclass(frozen=True)
class Mark:
    """An entity as the gold annotation or the model has it.

    start (int): First token.
    end (int): One after the last token.
    label (str): Its label.
    side (Literal): Who says so.
    kind (Kind): What became of it.
    masked (bool): Whether the entity had lost its label in training.
    score (Optional[float]): The model's probability.
    """

    start: int
    end: int
    label: str
    side: Literal["gold", "predicted"]
    kind: Kind
    masked: bool = False
    score: float | None = None


def classify(document: Prediction) -> list[Mark]:
    """Sort all entities of a document. Right is what agrees in boundaries and label. What is left
    on both sides is paired, first by equal boundaries and then by the greatest overlap, so that
    one mistake does not count as a missed and a spurious entity.

    document (Prediction): The document.
    RETURNS (List[Mark]): Gold entities, then predicted ones, each in order of their place.
    """
    right = document.gold & document.predicted.keys()
    pairs = _pair(document.gold - right, document.predicted.keys() - right)
    partners = {predicted: gold for gold, predicted in pairs.items()}
    marks = []
    for gold in sorted(document.gold):
        masked = gold in document.masked
        if gold in right:
            kind: Kind = "recovered" if masked else "correct"
        elif gold in pairs:
            kind = _mistake(gold, pairs[gold])
        else:
            kind = "not recovered" if masked else "missed"
        marks.append(Mark(*gold, side="gold", kind=kind, masked=masked))
    for predicted, score in sorted(document.predicted.items(), key=lambda item: item[0]):
        partner = predicted if predicted in right else partners.get(predicted)
        masked = partner in document.masked
        if predicted in right:
            kind = "recovered" if masked else "correct"
        else:
            kind = "spurious" if partner is None else _mistake(partner, predicted)
        marks.append(Mark(*predicted, side="predicted", kind=kind, masked=masked, score=score))
    return marks


def count_kinds(marks: Iterable[Mark]) -> dict[Kind, int]:
    """RETURNS (Dict[Kind, int]): How often each kind occurs, a mistaken pair once."""
    counts: dict[Kind, int] = {}
    for mark in marks:
        if mark.side == "gold" or mark.kind == "spurious":
            counts[mark.kind] = counts.get(mark.kind, 0) + 1
    return counts


def _mistake(gold: Entity, predicted: Entity) -> Kind:
    return "wrong label" if gold[:2] == predicted[:2] else "wrong boundaries"


def _pair(gold: Iterable[Entity], predicted: Iterable[Entity]) -> dict[Entity, Entity]:
    found = list(predicted)
    overlaps = [
        (one[:2] != other[:2], -(min(one[1], other[1]) - max(one[0], other[0])), one, other)
        for one in gold
        for other in found
        if one[0] < other[1] and other[0] < one[1]
    ]
    pairs: dict[Entity, Entity] = {}
    taken = set()
    for _, _, one, other in sorted(overlaps):
        if one not in pairs and other not in taken:
            pairs[one] = other
            taken.add(other)
    return pairs
