"""Whether a difference of F1 is more than the luck of the test documents."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]

RESAMPLES = 2000
CONFIDENCE = 0.95
# Numbers in a block of document weights: some tens of megabytes.
_BLOCK = 4_000_000


@dataclass(frozen=True)
class Difference:
    """A difference of micro F1, with the interval that holds most of its bootstrap resamples.

    value (float): The difference on the test corpus.
    low (float): The lower end.
    high (float): The upper end.
    """

    value: float
    low: float
    high: float

    @property
    def is_clear(self) -> bool:
        """RETURNS (bool): Whether the whole interval lies on one side of zero."""
        return self.low > 0 or self.high < 0


def micro_f1(counts: NDArray[np.float64] | Counts) -> Floats:
    """counts (NDArray): True positives, false positives, false negatives. Shape: (..., 3).
    RETURNS (NDArray): Micro F1; 0 where there is nothing right. Shape: (...).
    """
    right, wrong = 2.0 * counts[..., 0], counts[..., 1] + counts[..., 2]
    return np.divide(right, right + wrong, out=np.zeros_like(right), where=right > 0)


def document_weights(
    documents: int, *, resamples: int = RESAMPLES, seed: int = 0
) -> Iterator[NDArray[np.float64]]:
    """Draw bootstrap resamples of documents.

    documents (int): How many there are, and how many each resample draws with replacement.
    resamples (int): How many resamples.
    seed (int): The seed.
    YIELDS (NDArray): How often each document is in each resample.
        Shape: (some resamples, documents).
    """
    rng = np.random.default_rng(seed)
    block = max(1, _BLOCK // documents)
    for start in range(0, resamples, block):
        size = min(block, resamples - start)
        drawn = rng.integers(0, documents, (size, documents))
        drawn += documents * np.arange(size)[:, None]
        weights = np.bincount(drawn.ravel(), minlength=size * documents)
        yield weights.reshape(size, documents).astype(np.float64)


def paired_differences(
    counts: Mapping[str, Counts],
    reference: Mapping[str, str],
    *,
    resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
    seed: int = 0,
) -> dict[str, Difference]:
    """Compare systems on the same test documents by a paired percentile bootstrap: every resample
    of documents is given to both sides.

    counts (Mapping[str, NDArray]): For each system, true positives, false positives and false
        negatives of each document, summed over seeds. Shape: (documents, 3).
    reference (Mapping[str, str]): Which system each is compared with.
    resamples (int): How many resamples.
    confidence (float): The share of resamples inside the interval.
    seed (int): The seed.
    RETURNS (Dict[str, Difference]): The differences, by system.
    """
    if not reference:
        return {}
    names = sorted({*reference, *reference.values()})
    table = np.stack([counts[name] for name in names], axis=1)
    documents, systems, _ = table.shape
    flat = table.reshape(documents, systems * 3).astype(np.float64)
    sums = [
        weights @ flat for weights in document_weights(documents, resamples=resamples, seed=seed)
    ]
    scores = micro_f1(np.concatenate(sums).reshape(resamples, systems, 3))
    whole = micro_f1(table.sum(axis=0))
    place = {name: i for i, name in enumerate(names)}
    tail = 100 * (1 - confidence) / 2
    differences = {}
    for name, other in reference.items():
        one, two = place[name], place[other]
        low, high = np.percentile(scores[:, one] - scores[:, two], [tail, 100 - tail])
        value = float(whole[one] - whole[two])
        differences[name] = Difference(value, float(low), float(high))
    return differences
