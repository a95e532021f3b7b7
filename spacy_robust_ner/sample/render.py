"""Turn frames into sentences with entities, and sentences into tokens with tags."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ..errors import Errors
from .fillers import Fillers
from .frames import ALTERNATIVES, SLOT, Frame
from .rng import StableRandom

OUTSIDE = "O"
_MAX_REDRAWS = 20
_ARTICLE = re.compile(r"(?:^|[^\w'])[aA] $")
_VOWEL_SOUND = re.compile(r"[AEIOaeio]|[Uu][lmnp]|LED|HDMI|8|1[18](?!\d)")
_TOKEN = re.compile(
    r"(?:Inc|Ltd|Corp|INC|LTD|CORP)\.|(?<!\w)[A-Z]\.(?= )|\w+(?=n't)|n't"
    r"|'(?:s|S|ll|d|m|re|ve)\b|\d+(?:[.,:]\d+)+|\w+(?:[-&/]\w+)*|\S"
)


@dataclass(frozen=True)
class Name:
    """An entity of the sample.

    forms (Dict[str, str]): Its text in each form in which it can be mentioned; "full" is always
        there.
    labels (Dict[str, str]): The label of each form.
    """

    forms: dict[str, str]
    labels: dict[str, str]


@dataclass(frozen=True)
class Sentence:
    """A filled frame.

    text (str): The sentence as one would write it.
    entities (Tuple[Tuple[int, int, str], ...]): Start, end (exclusive) and label of each entity,
        in characters.
    """

    text: str
    entities: tuple[tuple[int, int, str], ...]

    def surface_forms(self) -> list[tuple[str, str]]:
        """RETURNS (List[Tuple[str, str]]): Text and label of each entity."""
        return [(self.text[start:end], label) for start, end, label in self.entities]


class NameSource(Protocol):
    """Where a scene takes its entities from."""

    def __contains__(self, kind: str) -> bool: ...

    def draw(self, kind: str, rng: StableRandom) -> Name: ...


class Scene:
    """The people and things of one document: a slot with an id means the same one throughout.

    names (NameSource): Gives the entities.
    fillers (Fillers): Give everything else.
    rng (StableRandom): Makes the choices.
    """

    def __init__(self, names: NameSource, fillers: Fillers, rng: StableRandom) -> None:
        self._names = names
        self._fillers = fillers
        self._rng = rng
        self._cast: dict[tuple[str, str], Name] = {}
        self._mentioned: list[str] = []

    def fill(self, frame: Frame) -> Sentence:
        """frame (Frame): The sentence with slots.
        RETURNS (Sentence): The sentence with names, numbers and words in their place.
        """
        template = ALTERNATIVES.sub(
            lambda match: self._rng.choice(match.group(1).split("|")), frame.text
        )
        text = ""
        entities = []
        position = 0
        for slot in SLOT.finditer(template):
            text += template[position : slot.start()]
            position = slot.end()
            value, label = self._value(slot, frame)
            if _ARTICLE.search(text) and _VOWEL_SOUND.match(value):
                text = f"{text[:-1]}n "
            if label != OUTSIDE:
                entities.append((len(text), len(text) + len(value), label))
            text += value
        text += template[position:]
        return Sentence(text.upper() if frame.capitals else text, tuple(entities))

    def _value(self, slot: re.Match[str], frame: Frame) -> tuple[str, str]:
        kind = slot["kind"]
        if kind in self._fillers:
            return self._fillers.draw(kind, self._rng), OUTSIDE
        if kind not in self._names:
            problem = f"a slot of the unknown kind '{kind}'"
            raise ValueError(Errors.R040.format(place=frame.place, problem=problem))
        name = self._name(kind, slot["id"])
        form = slot["form"] or "full"
        if form not in name.forms:
            problem = f"the unknown form '{form}' of '{kind}'"
            raise ValueError(Errors.R040.format(place=frame.place, problem=problem))
        return name.forms[form], slot["label"] or name.labels[form]

    def _name(self, kind: str, identifier: str | None) -> Name:
        if identifier is not None and (kind, identifier) in self._cast:
            return self._cast[kind, identifier]
        name = self._names.draw(kind, self._rng)
        for _ in range(_MAX_REDRAWS):
            if name.forms["full"] not in self._mentioned:
                break
            name = self._names.draw(kind, self._rng)
        self._mentioned.append(name.forms["full"])
        if identifier is not None:
            self._cast[kind, identifier] = name
        return name


def split_words(text: str) -> list[str]:
    """RETURNS (List[str]): The words and punctuation marks of an English text."""
    return _TOKEN.findall(text)


def split_characters(text: str) -> list[str]:
    """RETURNS (List[str]): All characters but spaces."""
    return [character for character in text if not character.isspace()]


def iob2_tags(length: int, label: str) -> list[str]:
    """RETURNS (List[str]): The tags of one entity of the given length."""
    return [f"B-{label}"] + [f"I-{label}"] * (length - 1)


def bmes_tags(length: int, label: str) -> list[str]:
    """RETURNS (List[str]): The tags of one entity of the given length."""
    if length == 1:
        return [f"S-{label}"]
    return [f"B-{label}"] + [f"M-{label}"] * (length - 2) + [f"E-{label}"]


def tagged_words(sentence: Sentence) -> list[tuple[str, str]]:
    """RETURNS (List[Tuple[str, str]]): Words with IOB2 tags. Entities and words share borders."""
    rows: list[tuple[str, str]] = []
    for text, label in _segments(sentence):
        tokens = split_words(text)
        tags = iob2_tags(len(tokens), label) if label != OUTSIDE else [OUTSIDE] * len(tokens)
        rows.extend(zip(tokens, tags, strict=True))
    return rows


def tagged_characters(sentence: Sentence) -> list[tuple[str, str]]:
    """RETURNS (List[Tuple[str, str]]): Characters with BMES tags."""
    rows: list[tuple[str, str]] = []
    for text, label in _segments(sentence):
        tokens = split_characters(text)
        tags = bmes_tags(len(tokens), label) if label != OUTSIDE else [OUTSIDE] * len(tokens)
        rows.extend(zip(tokens, tags, strict=True))
    return rows


def columns(sentences: Sequence[Sequence[tuple[str, str]]]) -> str:
    """RETURNS (str): One token a line, a tab before the tag, an empty line after a sentence."""
    return "".join("".join(f"{token}\t{tag}\n" for token, tag in rows) + "\n" for rows in sentences)


def _segments(sentence: Sentence) -> list[tuple[str, str]]:
    segments = []
    position = 0
    for start, end, label in sentence.entities:
        segments.append((sentence.text[position:start], OUTSIDE))
        segments.append((sentence.text[start:end], label))
        position = end
    segments.append((sentence.text[position:], OUTSIDE))
    return segments
