"""Negative sampling for tokens: some spans without an entity get tags of their own.

The spans are drawn anew in each epoch. The draw depends on the seed, the epoch and the document
alone, so that the order of the documents and a resumed run change nothing.
"""

import math

import numpy as np
from numpy.typing import NDArray

from ..errors import Errors
from .tag_set import OUTSIDE_TAG, TagSet


class NonSpanSampler:
    """Draws ⌈rate · tokens⌉ spans of a document that lie in "O" tokens and don't overlap; fewer if
    there is no room for more.

    rate (float): γ, spans a token.
    max_width (int): Tokens of the widest span.
    seed (int): Seed of the draw.
    """

    def __init__(self, *, rate: float = 0.1, max_width: int = 10, seed: int = 0) -> None:
        if not rate >= 0:
            raise ValueError(
                Errors.R103.format(name="rate", value=rate, wanted="a number of at least 0")
            )
        if max_width < 1:
            raise ValueError(
                Errors.R103.format(name="max_width", value=max_width, wanted="at least 1")
            )
        self.rate = rate
        self.max_width = max_width
        self.seed = seed

    def draw(self, is_free: NDArray[np.bool_], *, key: int, epoch: int) -> list[tuple[int, int]]:
        """Draw one span after another, each with the same chance among those that still fit.

        is_free (NDArray[bool]): Which tokens are "O" and not removed. Shape: (tokens,).
        key (int): A number for the document that stays the same whenever it comes back.
        epoch (int): The current epoch.
        RETURNS (List[Tuple[int, int]]): Starts and ends, in order.
        """
        wanted = math.ceil(self.rate * len(is_free) - 1e-9)
        starts, ends = _spans_within(is_free, self.max_width)
        if not wanted or not len(starts):
            return []
        rng = np.random.default_rng((self.seed % 2**64, epoch, key % 2**64))
        chosen: list[tuple[int, int]] = []
        taken = bytearray(len(is_free))
        # Going through a shuffle and leaving out what overlaps is drawing from what still fits.
        for i in rng.permutation(len(starts)).tolist():
            start, end = int(starts[i]), int(ends[i])
            if any(taken[start:end]):
                continue
            chosen.append((start, end))
            taken[start:end] = b"\1" * (end - start)
            if len(chosen) == wanted:
                break
        return sorted(chosen)

    def apply(
        self,
        tags: NDArray[np.int64],
        removed: NDArray[np.int64],
        tag_set: TagSet,
        *,
        key: int,
        epoch: int,
    ) -> NDArray[np.int64]:
        """Give the spans of this epoch their tags.

        tags (NDArray[int64]): The annotated tags of a document. Shape: (tokens,).
        removed (NDArray[int64]): Positions of its removed tokens. Shape: (removed,).
        tag_set (TagSet): A tag set with the type NON.
        key (int): See `draw`.
        epoch (int): The current epoch.
        RETURNS (NDArray[int64]): Tags with NON spans, a new array. Shape: (tokens,).
        """
        if tag_set.non_type is None:
            raise ValueError(Errors.R104.format(part="NON sampling", value="with_non_entity"))
        is_free = tags == OUTSIDE_TAG
        is_free[removed] = False
        spans = self.draw(is_free, key=key, epoch=epoch)
        drawn = tag_set.encode([(*span, tag_set.non_type) for span in spans], len(tags))
        return np.where(drawn == OUTSIDE_TAG, tags, drawn)


def _spans_within(
    is_free: NDArray[np.bool_], max_width: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """RETURNS (Tuple[NDArray, NDArray]): Starts and ends of all spans in free tokens. Shapes:
    (spans,).
    """
    positions = np.arange(len(is_free))
    # The next token that is not free, for each token.
    blocked = np.where(is_free, len(is_free), positions)
    room = np.minimum.accumulate(blocked[::-1])[::-1] - positions
    room = np.minimum(room, max_width)
    starts = np.repeat(positions, room)
    widths = np.arange(len(starts)) - np.repeat(np.cumsum(room) - room, room) + 1
    return starts, starts + widths
