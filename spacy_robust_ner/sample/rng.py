"""Random choices that come out the same on every machine and Python version."""

import random
import zlib
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class StableRandom:
    """A named stream of random choices.

    Built on ``random.Random.random()`` alone, the one method whose sequence Python promises to
    keep for a seed. Streams of other names don't disturb each other: a new frame or name changes
    the part of the sample that uses it and not all that is drawn after it.

    seed (int): The seed of the whole sample.
    name (str): The name of the stream.
    """

    def __init__(self, seed: int, name: str) -> None:
        self._random = random.Random(zlib.crc32(f"{seed}/{name}".encode())).random

    def chance(self, probability: float) -> bool:
        """RETURNS (bool): True with the given probability."""
        return self._random() < probability

    def between(self, low: int, high: int) -> int:
        """RETURNS (int): A number from low to high, both included."""
        return low + int(self._random() * (high - low + 1))

    def choice(self, options: Sequence[T]) -> T:
        """RETURNS (T): One of the options, all equally likely."""
        return options[int(self._random() * len(options))]

    def skewed_choice(self, options: Sequence[T]) -> T:
        """RETURNS (T): One of the options, the early ones much more often than the late ones."""
        position = self._random()
        return options[int(position * position * len(options))]

    def shuffled(self, options: Sequence[T]) -> list[T]:
        """RETURNS (List[T]): The options in a new order."""
        result = list(options)
        for last in range(len(result) - 1, 0, -1):
            other = int(self._random() * (last + 1))
            result[last], result[other] = result[other], result[last]
        return result
