"""The meaning of tags that a corpus writes as numbers."""

import json
from pathlib import Path
from typing import Any

from ...errors import Errors

BESIDE_INPUT = ("tag_to_id.json", "labels.txt")


def find_tag_map(path: Path, given: Path | None) -> dict[int, str]:
    """Read the tag map of an input.

    path (Path): The input.
    given (Optional[Path]): The tag map, or None to look for it beside the input.
    RETURNS (Dict[int, str]): The tag of each number.
    """
    if given is not None:
        return read_tag_map(given)
    for name in BESIDE_INPUT:
        if (path.parent / name).is_file():
            return read_tag_map(path.parent / name)
    raise ValueError(Errors.R012.format(path=path, names=" or ".join(BESIDE_INPUT)))


def read_tag_map(path: Path) -> dict[int, str]:
    """Read a tag map: JSON of tags and numbers in either direction, a JSON list of tags, or a
    text file with a tag a line, in the order of their numbers.

    path (Path): The file.
    RETURNS (Dict[int, str]): The tag of each number.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(Errors.R013.format(path=path, reason=error)) from error
    if path.suffix != ".json" and not text.lstrip().startswith(("{", "[")):
        return dict(enumerate(line.strip() for line in text.splitlines() if line.strip()))
    try:
        value = json.loads(text)
    except ValueError as error:
        raise ValueError(Errors.R013.format(path=path, reason=error)) from error
    names = _names_by_number(value)
    if not names:
        reason = "it is neither an object of tags and numbers nor a list of tags"
        raise ValueError(Errors.R013.format(path=path, reason=reason))
    return names


def _names_by_number(value: Any) -> dict[int, str]:
    if isinstance(value, list) and all(isinstance(tag, str) for tag in value):
        return dict(enumerate(value))
    if not isinstance(value, dict):
        return {}
    if all(isinstance(number, int) for number in value.values()):
        names = {number: tag for tag, number in value.items()}
        return names if len(names) == len(value) else {}
    if all(key.lstrip("-").isdigit() and isinstance(tag, str) for key, tag in value.items()):
        return {int(key): tag for key, tag in value.items()}
    return {}
