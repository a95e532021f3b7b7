"""Fields of an experiment file, and what is wrong with them. The messages have neither place nor
code: whoever reads the file knows its path."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

_NAME = re.compile(r"[\w.+=,]+(-[\w.+=,]+)*")
_NOT_IN_NAMES = re.compile(r"[^\w.+=,]+")


def check_fields(
    data: Any, what: str, known: Mapping[str, Any], *, required: tuple[str, ...]
) -> None:
    """Raise an error unless the data are a mapping of known fields.

    data (Any): What the file has there.
    what (str): What it should be.
    known (Mapping[str, Any]): The type, or a tuple of types, of each field.
    required (Tuple[str, ...]): The fields that it must have.
    """
    if not isinstance(data, dict):
        raise ValueError(f"{what} should be a mapping with {', '.join(known)}, not {data!r}")
    for name in required:
        if name not in data:
            raise ValueError(f"{what} lacks the field '{name}': {dict(data)!r}")
    for name, value in data.items():
        if name not in known:
            raise unknown(f"field of {what}", name, known)
        kinds = known[name] if isinstance(known[name], tuple) else (known[name],)
        # True is an int to Python, but not to a reader of the file.
        if not isinstance(value, kinds) or (isinstance(value, bool) and int in kinds):
            names = " or ".join(kind.__name__ for kind in kinds)
            raise ValueError(f"'{name}' of {what} should be a {names}, not {value!r}")


def check_unique(kind: str, names: list[str]) -> None:
    """Raise an error if there are no names or the same twice; the kind is the name of the field."""
    if not names:
        raise ValueError(f"'{kind}' is empty")
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ValueError(f"'{twice[0]}' comes twice in {kind}: give one of them another 'name'")


def unknown(kind: str, value: Any, known: Iterable[str]) -> ValueError:
    """RETURNS (ValueError): An error that says what is known instead."""
    return ValueError(f"unknown {kind} '{value}'; known: {', '.join(known)}")


def as_list(value: Any) -> list[Any]:
    """RETURNS (List[Any]): The value, if it is a list, or a list of the value alone."""
    return value if isinstance(value, list) else [value]


def as_rate(value: Any) -> float:
    """RETURNS (float): A share between 0 and 1; anything else is an error."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ValueError(
            f"the rate {value!r} is no share between 0 and 1. For 80 percent, write 0.8"
        )
    return float(value)


def as_seed(value: Any) -> int:
    """RETURNS (int): A whole number; anything else is an error."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"the seed {value!r} is not a whole number")
    return value


def as_name(value: str) -> str:
    """RETURNS (str): A part of a directory's name; anything else is an error."""
    if not _NAME.fullmatch(value):
        raise ValueError(
            f"'{value}' can't be the name of a directory: use letters, digits and single hyphens"
        )
    return value


def slug(value: str) -> str:
    """RETURNS (str): The value without what can't be in a name."""
    return _NOT_IN_NAMES.sub("-", value).strip("-")
