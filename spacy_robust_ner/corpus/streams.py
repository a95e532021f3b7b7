"""Lines and JSON values of a file, one at a time and with their line numbers."""

import codecs
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import Errors

CHUNK_SIZE = 1 << 16
# The longest thing that the decoder reports at its beginning when the buffer cuts it: "-Infinity".
_CUT_MARGIN = 16
_JSON_SPACE = re.compile(r"[ \t\n\r]*")


class Item(NamedTuple):
    """line (int): Where the value starts, from 1.
    value (Any): A line's text or a JSON value.
    problem (str): Why there is no value, or empty.
    """

    line: int
    value: Any
    problem: str = ""


def read_lines(path: Path) -> Iterator[Item]:
    """Read the lines of a UTF-8 file. Only a line feed ends a line, since other separators of
    Unicode occur inside of tokens.

    path (Path): The file.
    YIELDS (Item): The lines without their ends.
    """
    with path.open("rb") as file:
        for number, raw in enumerate(file, start=1):
            try:
                text = raw.decode("utf-8-sig" if number == 1 else "utf8")
            except UnicodeDecodeError as error:
                yield Item(number, None, f"The line is not UTF-8 ({error.reason}).")
            else:
                yield Item(number, text.rstrip("\r\n"))


def read_json(path: Path) -> Iterator[Item]:
    """Read the records of a JSON array, of JSON lines, or of a single JSON object.

    path (Path): The file.
    YIELDS (Item): The array's elements, the lines' values, or the object.
    """
    layout = json_layout(path)
    if layout == "lines":
        yield from _read_json_lines(path)
    else:
        yield from _read_json_values(path, is_array=layout == "array")


def json_layout(path: Path) -> str:
    """Tell how a file holds its JSON, from its beginning alone.

    path (Path): The file.
    RETURNS (str): "array", "lines", "object", or "" if it is no JSON.
    """
    with path.open("rb") as file:
        head = file.read(CHUNK_SIZE).decode("utf-8-sig", errors="ignore").lstrip()
    if head.startswith("["):
        # A line such as ["text", {"entities": []}] is a record; an array holds records.
        return "lines" if head[1:].lstrip().startswith('"') else "array"
    if not head.startswith("{"):
        return ""
    lines = [line.strip() for line in head.split("\n", 2)]
    if len(lines) == 1 or _is_json(lines[0]) or lines[1].startswith("{"):
        return "lines"
    return "object"


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _read_json_lines(path: Path) -> Iterator[Item]:
    for item in read_lines(path):
        if item.problem:
            yield item
        elif item.value.strip():
            try:
                value = json.loads(item.value)
            except (ValueError, RecursionError) as error:
                yield Item(item.line, None, f"The line is not valid JSON ({error}).")
            else:
                yield Item(item.line, value)


class _Buffer:
    """A window on a file's text that can be extended at its end and dropped at its start."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.text = ""
        self.line = 1
        self.at_end = False
        self._file = path.open("rb")
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._chunk = CHUNK_SIZE

    def __enter__(self) -> "_Buffer":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def extend(self) -> None:
        raw = self._file.read(self._chunk)
        self.at_end = not raw
        try:
            self.text += self._decoder.decode(raw, final=self.at_end)
        except UnicodeDecodeError as error:
            raise self.malformed(f"not UTF-8: {error.reason}", len(self.text)) from error
        # A value longer than the window is decoded anew after each extension: doubling keeps the
        # whole effort linear.
        self._chunk *= 2

    def drop(self, end: int) -> None:
        self.line += self.text.count("\n", 0, end)
        self.text = self.text[end:]
        self._chunk = CHUNK_SIZE

    def skip_space(self) -> str:
        """RETURNS (str): The next character that is no space, or empty at the end."""
        while True:
            match = _JSON_SPACE.match(self.text)
            self.drop(match.end() if match else 0)
            if self.text or self.at_end:
                return self.text[:1]
            self.extend()

    def decode(self) -> Any:
        """RETURNS (Any): The JSON value at the start of the window, which is dropped."""
        decoder = json.JSONDecoder()
        while True:
            try:
                value, end = decoder.raw_decode(self.text)
            except json.JSONDecodeError as error:
                cut = (
                    error.msg.startswith("Unterminated string")
                    or error.pos >= len(self.text) - _CUT_MARGIN
                )
                if self.at_end or not cut:
                    raise self.malformed(error.msg, error.pos) from error
                self.extend()
            except RecursionError as error:
                raise self.malformed("nested too deeply", 0) from error
            else:
                self.drop(end)
                return value

    def malformed(self, reason: str, position: int) -> ValueError:
        line = self.line + self.text.count("\n", 0, position)
        return ValueError(Errors.R009.format(path=self.path, line=line, reason=reason))


def _read_json_values(path: Path, *, is_array: bool) -> Iterator[Item]:
    with _Buffer(path) as buffer:
        if not is_array:
            buffer.skip_space()
            yield Item(buffer.line, buffer.decode())
            if buffer.skip_space():
                raise buffer.malformed("something follows the only object of the file", 0)
            return
        buffer.skip_space()
        buffer.drop(1)
        following = buffer.skip_space()
        while following != "]":
            line = buffer.line
            yield Item(line, buffer.decode())
            following = buffer.skip_space()
            if following == ",":
                buffer.drop(1)
                if buffer.skip_space() == "]":
                    raise buffer.malformed("a comma before the end of the list", 0)
            elif following != "]":
                reason = "a comma or ] is missing" if following else "the list has no end"
                raise buffer.malformed(reason, 0)
        buffer.drop(1)
        if buffer.skip_space():
            raise buffer.malformed("something follows the list", 0)
