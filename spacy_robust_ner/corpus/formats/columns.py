"""CoNLL-style columns: a token a line, an empty line after each sentence."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ...errors import Errors
from ...tags import SchemeDetector, decode_tags, split_tag
from ..convert_report import Note
from ..records import BadRecord, TokenRecord
from ..source import Source
from ..streams import CHUNK_SIZE, Item, read_lines

DOCSTART = "-DOCSTART-"

_SPACES = re.compile(" +")
_LOOKED_AT = 200


class Sentence(NamedTuple):
    """words (List[str]): The token column.
    tags (List[str]): The tag column, as it is.
    """

    words: list[str]
    tags: list[str]


def split_columns(line: str) -> list[str]:
    """Split a line at tabs, or else at runs of spaces. A line that begins with the separator has
    an empty first column, and no other whitespace is touched: in some corpora it is a token.

    line (str): The line.
    RETURNS (List[str]): The columns.
    """
    return line.split("\t") if "\t" in line else _SPACES.split(line.rstrip(" "))


def looks_like_columns(path: Path) -> bool:
    """RETURNS (bool): Whether a file's first lines are columns, the last one of them tags."""
    # Not by lines of the file: the whole of a JSON file can be one line.
    with path.open("rb") as file:
        head = file.read(CHUNK_SIZE)
        lines = head.split(b"\n")
        if file.read(1):
            lines.pop()
    seen = 0
    for raw in lines[:_LOOKED_AT]:
        try:
            line = raw.decode("utf-8-sig").rstrip("\r")
        except UnicodeDecodeError:
            return False
        if not line.strip():
            continue
        columns = split_columns(line)
        last = columns[-1]
        is_tag = last in ("O", "UNK", "-", "-X-") or split_tag(last)[0] != ""
        if len(columns) < 2 or not (is_tag or columns[0] == DOCSTART):
            return False
        seen += 1
    return seen > 0


def read_columns(source: Source) -> Iterator[TokenRecord]:
    """Read a file of columns.

    source (Source): The input.
    YIELDS (TokenRecord): A sentence, or the sentences from one -DOCSTART- to the next.
    """
    survey = _Survey(source)
    scheme = source.options.scheme
    if scheme == "auto":
        scheme = survey.scheme()
        source.report.found.append("scheme")
    source.report.scheme = scheme
    strip_digits = source.options.segmentation_digits == "strip"
    if source.options.segmentation_digits == "auto" and survey.has_segmentation_digits():
        strip_digits = True
        source.report.found.append("segmentation digits, stripped")
    if source.options.docs == "docstart" and not survey.docstarts:
        raise ValueError(Errors.R014.format(path=source.path))

    def parse(item: Item) -> TokenRecord | None:
        return _parse_sentence(item, source, scheme, strip_digits)

    if source.options.docs == "sentence":
        yield from source.parse(_sentences(source), parse)
        return
    together: list[TokenRecord] = []
    for item in _sentences(source):
        if item.value is None and not item.problem:
            if together:
                yield _join(together)
            together = []
        else:
            together.extend(source.parse([item], parse))
    if together:
        yield _join(together)


def _sentences(source: Source) -> Iterator[Item]:
    """YIELDS (Item): A Sentence, or None for a -DOCSTART-."""
    rows: list[list[str]] = []
    first = 0
    problem = ""
    for item in read_lines(source.path):
        if item.problem:
            problem = problem or f"Line {item.line} of the sentence: {item.problem}"
            first = first or item.line
            continue
        if not item.value.strip():
            if rows or problem:
                yield _sentence(first, rows, problem, source)
            rows, first, problem = [], 0, ""
            continue
        columns = split_columns(item.value)
        if DOCSTART in columns:
            if rows or problem:
                yield _sentence(first, rows, problem, source)
            rows, first, problem = [], 0, ""
            yield Item(item.line, None)
            continue
        first = first or item.line
        rows.append(columns)
    if rows or problem:
        yield _sentence(first, rows, problem, source)


def _sentence(line: int, rows: list[list[str]], problem: str, source: Source) -> Item:
    if problem:
        return Item(line, None, problem)
    token_at, tag_at = source.options.token_column, source.options.tag_column
    needed = max(2, *(each if each > 0 else -each for each in (token_at, tag_at)))
    for i, row in enumerate(rows):
        if len(row) < needed:
            reason = (
                f"There must be at least {needed} columns, but this line has {len(row)}: "
                f"{' '.join(row)[:60]!r}."
            )
            return Item(line + i, None, reason)
    token_index = token_at - 1 if token_at > 0 else token_at
    tag_index = tag_at - 1 if tag_at > 0 else tag_at
    words = [row[token_index] for row in rows]
    return Item(line, Sentence(words, [row[tag_index].strip() for row in rows]))


def _known_tags(tags: list[str], source: Source) -> list[str | None]:
    missing = source.options.missing_tags
    return [None if tag in missing else tag for tag in tags]


def _parse_sentence(
    item: Item, source: Source, scheme: str, strip_digits: bool
) -> TokenRecord | None:
    if item.value is None:
        return None
    words, raw_tags = item.value
    for i, tag in enumerate(raw_tags):
        if not tag:
            raise BadRecord(f"The tag of the token {words[i]!r} (line {item.line + i}) is empty.")
    tags = _known_tags(raw_tags, source)
    try:
        spans, irregular = decode_tags(tags, scheme)
    except ValueError as error:
        raise BadRecord(str(error)) from error
    for i in irregular:
        source.report.irregular_tags.add(Note(item.line + i, f"{tags[i]} is out of order"))
    if strip_digits:
        words = [word[:-1] if word[-1:].isdigit() else word for word in words]
    return TokenRecord(item.line, words, spans, [i for i, tag in enumerate(tags) if tag is None])


def _join(sentences: list[TokenRecord]) -> TokenRecord:
    joined = TokenRecord(sentences[0].line, [], [], [], [])
    for sentence in sentences:
        offset = len(joined.words)
        joined.sentence_starts = [*(joined.sentence_starts or []), offset]
        joined.words.extend(sentence.words)
        joined.spans.extend((s + offset, e + offset, label) for s, e, label in sentence.spans)
        joined.missing.extend(i + offset for i in sentence.missing)
    return joined


class _Survey:
    """A first pass over the file for what only the whole of it can tell."""

    def __init__(self, source: Source) -> None:
        self.docstarts = 0
        self._path = source.path
        self._detector = SchemeDetector()
        self._tokens = 0
        self._like_digits = True
        self._digit_breaks = 0
        for item in _sentences(source):
            if item.problem:
                continue
            if item.value is None:
                self.docstarts += 1
                continue
            self._detector.update(_known_tags([t for t in item.value.tags if t], source))
            self._look_at_digits(item.value.words)

    def scheme(self) -> str:
        try:
            return self._detector.result()
        except ValueError as error:
            raise ValueError(f"{error} (in {self._path})") from error

    def has_segmentation_digits(self) -> bool:
        """Whether every token is one character and its position in its word. A position follows
        the one before it or starts anew; the corpora have a few slips."""
        return self._like_digits and self._tokens > 0 and self._digit_breaks * 100 <= self._tokens

    def _look_at_digits(self, words: list[str]) -> None:
        if not self._like_digits:
            return
        before = -1
        for word in words:
            # Characters that were lost in an earlier conversion have become two.
            if not (2 <= len(word) <= 3 and "0" <= word[-1] <= "9"):
                self._like_digits = False
                return
            digit = int(word[-1])
            self._digit_breaks += digit not in (0, before + 1)
            before = digit
        self._tokens += len(words)
