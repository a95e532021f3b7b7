"""An input on its way through a format's reader: where it is, how to read it, what was found."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

from spacy.language import Language

from ..errors import Errors
from ..tags import SCHEMES
from .convert_report import InputReport, Note
from .records import BadRecord
from .streams import Item

RecordT = TypeVar("RecordT")

CHOICES: dict[str, tuple[str, ...]] = {
    "scheme": ("auto", *SCHEMES),
    "docs": ("sentence", "docstart"),
    "segmentation_digits": ("auto", "strip", "keep"),
    "misaligned": ("missing", "expand", "contract", "error"),
}


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How inputs are read. Each format heeds the options that make sense for it.

    scheme (str): The tag scheme, or "auto" to find it by a first pass over the input.
    token_column (int): The column of the tokens, from 1; negative counts from the last.
    tag_column (int): The column of the tags, likewise.
    docs (str): "sentence" for a document a sentence, "docstart" for a document from one
        -DOCSTART- to the next.
    segmentation_digits (str): Whether to cut off the position in the word from tokens such as
        "科0": "strip", "keep", or "auto" to strip if the whole file is like that.
    missing_tags (Tuple[str, ...]): Tags of tokens that nobody annotated.
    tag_map (Optional[Path]): The meaning of tags that are numbers.
    no_missing (bool): Whether unlabeled tokens of accepted Prodigy answers are O.
    misaligned (str): What becomes of a span that doesn't begin and end with a token: its tokens
        become "missing", it is taken to the next token borders outside ("expand") or inside
        ("contract"), or it is an "error".
    text_key (Optional[str]): The field of a Label Studio task's text, if it isn't obvious.
    skip_bad (bool): Whether to leave out what is malformed instead of stopping.
    """

    scheme: str = "auto"
    token_column: int = 1
    tag_column: int = -1
    docs: str = "sentence"
    segmentation_digits: str = "auto"
    missing_tags: tuple[str, ...] = ("UNK", "-")
    tag_map: Path | None = None
    no_missing: bool = False
    misaligned: str = "missing"
    text_key: str | None = None
    skip_bad: bool = False

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if each.name in CHOICES and value not in CHOICES[each.name]:
                option = "--" + each.name.replace("_", "-")
                raise ValueError(
                    Errors.R016.format(
                        value=value, option=option, known=", ".join(CHOICES[each.name])
                    )
                )
            if each.name.endswith("_column") and value == 0:
                option = "--" + each.name.replace("_", "-")
                raise ValueError(
                    Errors.R016.format(value=value, option=option, known="1, 2, … or -1, -2, …")
                )


@dataclass(slots=True)
class Source:
    """path (Path): The input.
    nlp (Language): Its tokenizer makes tokens of running text.
    options (ReadOptions): How to read it.
    report (InputReport): What was found, filled while reading.
    shares_vocab (bool): Whether all documents must share the pipeline's vocab. Otherwise each
        .spacy file is read with one of its own, which goes when the file is done.
    """

    path: Path
    nlp: Language
    options: ReadOptions
    report: InputReport
    shares_vocab: bool = True

    def leave_out(self, line: int, reason: str) -> None:
        """Deal with a malformed part: note it if it may be skipped, stop otherwise.

        line (int): Its line.
        reason (str): What is wrong, as a sentence.
        """
        if not self.options.skip_bad:
            raise ValueError(Errors.R008.format(path=self.path, line=line, reason=reason))
        self.report.skipped.add(Note(line, reason))

    def parse(
        self, items: Iterable[Item], parser: Callable[[Item], RecordT | None]
    ) -> Iterator[RecordT]:
        """Parse items, leaving out malformed ones.

        items (Iterable[Item]): Lines, sentences or JSON values.
        parser (Callable[[Item], Optional[RecordT]]): May raise BadRecord, and return None for
            an item without an answer to take over.
        YIELDS (RecordT): What the parser makes of the items.
        """
        for item in items:
            try:
                if item.problem:
                    raise BadRecord(item.problem)
                record = parser(item)
            except BadRecord as error:
                self.leave_out(item.line, str(error))
            else:
                if record is not None:
                    yield record


def require(value: Any, kind: type | tuple[type, ...], what: str) -> Any:
    """Check the type of a part of a JSON value.

    value (Any): The part.
    kind (Type): What it has to be. A bool is no int.
    what (str): Its name for the message.
    RETURNS (Any): The value.
    """
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is int):
        shown = repr(value)
        shown = shown if len(shown) <= 60 else shown[:60] + "…"
        kinds = kind if isinstance(kind, tuple) else (kind,)
        expected = " or ".join(_KIND_NAMES.get(each, each.__name__) for each in kinds)
        raise BadRecord(f"{what} must be {expected}, not {shown}.")
    return value


_KIND_NAMES = {str: "a string", int: "a whole number", list: "a list", dict: "an object"}
