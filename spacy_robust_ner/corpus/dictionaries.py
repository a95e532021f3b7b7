"""Dictionaries of entity names: files in, entries with a label and an origin out.

Four kinds of file, told apart by their endings:

- ``.tsv``: entry TAB label, and optionally TAB how often the entry was seen under that label;
- ``.jsonl`` and ``.json``: patterns of spaCy's entity ruler and span ruler, one object a line or a
  list of objects, ``{"label": …, "pattern": …}``. A string is a phrase; a list of dicts is a token
  pattern. ``{"text": …}`` is read as a phrase; ``"count"`` is optional; ids are not used;
- a directory: a saved ruler (its ``patterns`` file) or all files of the three other kinds;
- anything else: one entry a line. The label is the file's name without its ending.

``LABEL=path`` states the label of everything in the file that does not name one itself.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import Errors
from .records import BadRecord
from .streams import read_json, read_lines

TokenPattern = list[dict[str, Any]]

_PATTERN_SUFFIXES = (".jsonl", ".json")
_LIST_SUFFIXES = ("", ".txt", ".lst", ".dict")
_RULER_FILES = ("patterns.jsonl", "patterns")
# What only a trained pipeline sets, and what would let a pattern read the gold annotation.
_UNREADABLE_ATTRIBUTES = frozenset(
    ("TAG", "POS", "MORPH", "LEMMA", "DEP", "ENT_TYPE", "ENT_IOB", "ENT_ID", "ENT_KB_ID")
)


@dataclass(frozen=True, slots=True)
class DictionarySource:
    """A dictionary file and the label of those of its entries that name none.

    path (Path): The file.
    label (Optional[str]): The stated label.
    """

    path: Path
    label: str | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """One name or token pattern of a dictionary.

    label (str): The entity label.
    text (str): The name; of a token pattern, its JSON.
    pattern (Optional[TokenPattern]): The token pattern, or None for a name.
    count (int): How often the name was seen under the label.
    path (Path): The file it stands in.
    line (int): The line where it stands, from 1.
    """

    label: str
    text: str
    pattern: TokenPattern | None
    count: int
    path: Path
    line: int


@dataclass(frozen=True, slots=True)
class BadLine:
    """A dictionary line that can't be used.

    path (str): The file.
    line (int): The line, from 1.
    reason (str): What is wrong with it.
    """

    path: str
    line: int
    reason: str


def parse_source(argument: str) -> list[DictionarySource]:
    """Read a ``PATH`` or ``LABEL=PATH`` argument.

    argument (str): The argument. A path that exists as a whole is one even if it contains "=".
    RETURNS (List[DictionarySource]): The files, in the order of their names within a directory.
    """
    path, label = Path(argument), None
    if not path.exists() and "=" in argument:
        label, _, rest = argument.partition("=")
        path = Path(rest)
    if not path.exists() or label == "":
        raise FileNotFoundError(Errors.R080.format(path=argument))
    files = [path] if path.is_file() else _dictionary_files(path)
    if not files:
        raise FileNotFoundError(Errors.R080.format(path=argument))
    return [DictionarySource(file, label) for file in files]


def _dictionary_files(directory: Path) -> list[Path]:
    for name in _RULER_FILES:
        if (directory / name).is_file():
            return [directory / name]
    known = (*_LIST_SUFFIXES, *_PATTERN_SUFFIXES, ".tsv")
    return sorted(
        path
        for path in directory.iterdir()
        if path.is_file()
        and path.suffix in known
        and not path.name.startswith(".")
        # A note about the dictionaries is none of them.
        and path.stem.upper() != "README"
    )


def read_entries(
    sources: Iterable[DictionarySource], *, bad_lines: list[BadLine] | None = None
) -> Iterator[Entry]:
    """Read dictionaries in order; the order is the priority of their entries.

    sources (Iterable[DictionarySource]): The files.
    bad_lines (Optional[List[BadLine]]): Collects the lines that can't be used. None: the first one
        is an error.
    YIELDS (Entry): The entries, with outer whitespace taken off.
    """
    for source in sources:
        is_patterns = _holds_patterns(source.path)
        for item in read_json(source.path) if is_patterns else read_lines(source.path):
            try:
                if item.problem:
                    raise BadRecord(item.problem)
                if is_patterns:
                    yield _parse_pattern(item.value, source, item.line)
                elif item.value.strip():
                    yield _parse_line(item.value, source, item.line)
            except BadRecord as error:
                if bad_lines is None:
                    raise ValueError(
                        Errors.R081.format(path=source.path, line=item.line, reason=error)
                    ) from error
                bad_lines.append(BadLine(str(source.path), item.line, str(error)))


def read_word_list(path: Path) -> frozenset[str]:
    """Read a list of words, one a line.

    path (Path): The file.
    RETURNS (FrozenSet[str]): The words, case-folded, with single inner spaces.
    """
    if not path.is_file():
        raise FileNotFoundError(Errors.R087.format(path=path))
    words = set()
    for item in read_lines(path):
        if item.problem:
            raise ValueError(Errors.R088.format(path=path, line=item.line, reason=item.problem))
        words.add(" ".join(item.value.casefold().split()))
    return frozenset(words - {""})


def _holds_patterns(path: Path) -> bool:
    return path.suffix in _PATTERN_SUFFIXES or path.name in _RULER_FILES


def _parse_line(text: str, source: DictionarySource, line: int) -> Entry:
    if source.path.suffix == ".tsv":
        return _parse_row(text, source, line)
    if "\t" in text.strip():
        raise BadRecord("A tab in a list of one entry a line; a table's name must end in .tsv.")
    return Entry(source.label or source.path.stem, text.strip(), None, 1, source.path, line)


def _parse_row(text: str, source: DictionarySource, line: int) -> Entry:
    name, *rest = (column.strip() for column in text.split("\t"))
    if not name:
        raise BadRecord("The entry before the tab is empty.")
    if len(rest) > 2:
        raise BadRecord(f"{len(rest) + 1} columns, expected entry, label and perhaps a count.")
    label = (rest[0] if rest else "") or source.label
    if not label:
        raise BadRecord(f"The entry '{name}' has no label.")
    return Entry(label, name, None, _parse_count(rest[1] if rest[1:] else 1), source.path, line)


def _parse_pattern(record: Any, source: DictionarySource, line: int) -> Entry:
    if not isinstance(record, dict):
        raise BadRecord("This is no JSON object.")
    label = record.get("label") or source.label
    if not isinstance(label, str):
        raise BadRecord('There is no "label".')
    pattern = record.get("pattern", record.get("text"))
    count = _parse_count(record.get("count", 1))
    if isinstance(pattern, str) and pattern.strip():
        return Entry(label, pattern.strip(), None, count, source.path, line)
    if isinstance(pattern, list) and pattern and all(isinstance(p, dict) for p in pattern):
        unreadable = sorted(_attributes(pattern) & _UNREADABLE_ATTRIBUTES)
        if unreadable:
            raise BadRecord(
                f"A token pattern asks for {unreadable[0]}, which raw text does not have."
            )
        text = json.dumps(pattern, ensure_ascii=False)
        return Entry(label, text, pattern, count, source.path, line)
    raise BadRecord('"pattern" must be a string or a list of objects, and not empty.')


def _attributes(pattern: TokenPattern) -> set[str]:
    return {str(name).upper() for token in pattern for name in token}


def _parse_count(value: Any) -> int:
    try:
        count = int(value)
    except (TypeError, ValueError):
        count = 0
    if count < 1:
        raise BadRecord(f"The count '{value}' is not a whole number of at least 1.")
    return count
