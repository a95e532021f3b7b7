"""What a format's reader hands on: one annotated unit of an input, before it is a Doc."""

from dataclasses import dataclass, field

from ..tags import TokenSpan

CharSpan = tuple[int, int, str]


class BadRecord(ValueError):
    """A part of an input that can't be used. The message is a sentence without place or code:
    whoever reads the input knows the file and the line."""


@dataclass(slots=True)
class TokenRecord:
    """A unit that comes with its own tokens.

    line (int): Where it starts in its file, from 1.
    words (List[str]): The tokens.
    spans (List[TokenSpan]): The entities, end exclusive.
    missing (List[int]): Tokens that nobody annotated.
    sentence_starts (Optional[List[int]]): First tokens of the sentences, if known.
    """

    line: int
    words: list[str]
    spans: list[TokenSpan]
    missing: list[int] = field(default_factory=list)
    sentence_starts: list[int] | None = None


@dataclass(slots=True)
class TextRecord:
    """A unit of running text with character offsets.

    line (int): Where it starts in its file, from 1.
    text (str): The text.
    spans (List[CharSpan]): The entities, end exclusive.
    annotated (bool): Whether the tokens outside of the entities are O; else they are missing.
    rejected (List[CharSpan]): Spans that a reviewer said are no entities of that label.
    unknown (List[Tuple[int, int]]): Stretches whose tokens are missing in any case.
    words (Optional[List[str]]): The input's own tokens, if they make up the text.
    spaces (Optional[List[bool]]): For each of them, whether a space follows.
    """

    line: int
    text: str
    spans: list[CharSpan]
    annotated: bool = True
    rejected: list[CharSpan] = field(default_factory=list)
    unknown: list[tuple[int, int]] = field(default_factory=list)
    words: list[str] | None = None
    spaces: list[bool] | None = None


Record = TokenRecord | TextRecord
