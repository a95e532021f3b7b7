"""Cut documents to the passages around what went wrong, so that long ones can be looked at."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b

from .error_types import Mark
from .results import Prediction, Split

# A document of at most that many tokens is shown whole.
WHOLE = 80
# Tokens shown on either side of an entity of a longer one.
CONTEXT = 20


@dataclass(frozen=True)
class Passage:
    """A piece of a document.

    split (Split): Whether it is test or training text.
    tokens (Tuple[str, ...]): Its tokens, each with the space that follows.
    marks (Tuple[Mark, ...]): Its entities, counted from the start of the passage.
    cut_before (bool): Whether the document has more before it.
    cut_after (bool): Whether the document has more after it.
    """

    split: Split
    tokens: tuple[str, ...]
    marks: tuple[Mark, ...]
    cut_before: bool = False
    cut_after: bool = False

    @property
    def rank(self) -> bytes:
        """RETURNS (bytes): A random number that only depends on the text, so that a sample of
        passages is fair, and similar for all runs.
        """
        return blake2b("\0".join(self.tokens).encode("utf8"), digest_size=8).digest()


def cut_passages(document: Prediction, marks: Sequence[Mark]) -> Iterator[Passage]:
    """Cut a document.

    document (Prediction): The document.
    marks (Sequence[Mark]): What `classify` says about it.
    YIELDS (Passage): Passages with something to see: all but correct entities.
    """
    tokens = [
        word + (" " if space else "")
        for word, space in zip(document.words, document.spaces, strict=True)
    ]
    for start, end in _windows(len(tokens), marks):
        yield Passage(
            split=document.split,
            tokens=tuple(tokens[start:end]),
            marks=tuple(
                replace(mark, start=mark.start - start, end=mark.end - start)
                for mark in marks
                if start <= mark.start and mark.end <= end
            ),
            cut_before=start > 0,
            cut_after=end < len(tokens),
        )


def _windows(length: int, marks: Sequence[Mark]) -> list[tuple[int, int]]:
    shown = [mark for mark in marks if mark.kind != "correct"]
    if not shown:
        return []
    if length <= WHOLE:
        return [(0, length)]
    windows: list[tuple[int, int]] = []
    for mark in sorted(shown, key=lambda mark: mark.start):
        start, end = max(0, mark.start - CONTEXT), min(length, mark.end + CONTEXT)
        if windows and start <= windows[-1][1]:
            start, end = windows[-1][0], max(end, windows[-1][1])
            windows.pop()
        windows.append((start, end))
    return windows
