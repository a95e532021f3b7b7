"""Read the files of sentence frames. The syntax is described in the package's docstring."""

import re
from dataclasses import dataclass
from pathlib import Path

from ..errors import Errors

DATA_DIR = Path(__file__).parent

SLOT = re.compile(
    r"\{(?P<kind>[a-z]+)(?:#(?P<id>\d+))?(?:\.(?P<form>[a-z]+))?(?:@(?P<label>[A-Z]+))?\}"
)
ALTERNATIVES = re.compile(r"\[([^\[\]]*)\]")
_FOLLOW_UP = "+ "
_CAPITALS = "^ "
_BRACKETS = re.compile(r"[{}\[\]]")


@dataclass(frozen=True)
class Frame:
    """A sentence with slots.

    text (str): The sentence as it stands in the file.
    capitals (bool): Whether it is printed in capitals, as some headlines are.
    place (str): File and line, for messages.
    """

    text: str
    capitals: bool
    place: str


@dataclass(frozen=True)
class Story:
    """A sentence that can stand alone and the sentences that may follow it.

    lead (Frame): The first sentence.
    follow_ups (Tuple[Frame, ...]): Sentences about the same people and things; any of them, in
        their order, can follow the lead.
    """

    lead: Frame
    follow_ups: tuple[Frame, ...]

    @property
    def frames(self) -> tuple[Frame, ...]:
        """RETURNS (Tuple[Frame, ...]): All sentences of the story."""
        return (self.lead, *self.follow_ups)


def read_stories(path: Path) -> list[Story]:
    """Read one file of frames.

    path (Path): A text file.
    RETURNS (List[Story]): Its stories in the order of the file.
    """
    blocks: list[list[Frame]] = []
    for number, line in enumerate(path.read_text(encoding="utf8").splitlines(), start=1):
        place = f"{path.name}, line {number}"
        if not line.strip() or line.startswith("# "):
            continue
        follows = line.startswith(_FOLLOW_UP)
        text = line.removeprefix(_FOLLOW_UP)
        frame = Frame(text.removeprefix(_CAPITALS), text.startswith(_CAPITALS), place)
        _check_brackets(frame)
        if not follows:
            blocks.append([frame])
        elif blocks:
            blocks[-1].append(frame)
        else:
            raise ValueError(Errors.R040.format(place=place, problem="a follow-up without a lead"))
    return [Story(block[0], tuple(block[1:])) for block in blocks]


def _check_brackets(frame: Frame) -> None:
    rest = ALTERNATIVES.sub("", SLOT.sub("", frame.text))
    stray = _BRACKETS.search(rest)
    if stray:
        problem = f"'{stray.group()}' that belongs to no slot or list of alternatives"
        raise ValueError(Errors.R040.format(place=frame.place, problem=problem))
