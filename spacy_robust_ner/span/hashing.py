"""Random numbers that depend on what they are for, and not on the order in which they are drawn."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def hashed_uniform(
    seed: int,
    epoch: int,
    doc_keys: Sequence[int],
    doc_index: NDArray[np.int64],
    *numbers: NDArray[np.int64],
) -> NDArray[np.float64]:
    """seed (int): The seed.
    epoch (int): The epoch.
    doc_keys (Sequence[int]): A number for each document of a batch.
    doc_index (NDArray[int64]): The document of each item. Shape: (items,).
    numbers (NDArray[int64]): What tells the items of a document apart. Shapes: (items,).
    RETURNS (NDArray[float64]): Numbers in [0, 1) that depend on the arguments alone. Shape:
        (items,).
    """
    keys = np.array([key % 2**64 for key in doc_keys], dtype=np.uint64)
    seeded = _mix(keys ^ _mix(np.array([seed % 2**64], dtype=np.uint64)))
    mixed = _mix(seeded + np.uint64(epoch))[doc_index]
    for number in numbers:
        mixed = _mix(mixed + number.astype(np.uint64))
    return (mixed >> np.uint64(11)) * 2.0**-53


def _mix(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """One step of the splitmix64 generator, which scrambles every bit."""
    values = values + np.uint64(0x9E3779B97F4A7C15)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
