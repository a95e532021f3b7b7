"""Step one of two-step positive-unlabeled learning: which "O" tokens are hardly "O" at all.

After some epochs of plain training, the value of "O" is low for tokens that look like entities.
All "O" tokens of the training set stand in one ranking, and the lowest are removed from the loss.
"""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from ..errors import Errors
from .tag_set import OUTSIDE_TAG


def o_values(decisions: Tensor) -> NDArray[np.float64]:
    """decisions (Tensor): Decision values of a head, without any softmax. Shape: (tokens, tags).
    RETURNS (NDArray[float64]): The entry of "O". Shape: (tokens,).
    """
    values: NDArray[np.float64] = decisions[:, OUTSIDE_TAG].detach().cpu().double().numpy()
    return values


@dataclass(frozen=True)
class RemovedTokens:
    """Tokens whose "O" is disregarded, the lowest value first.

    docs (NDArray[uint64]): The key of each token's document: its number in the training set, or a
        hash of its words. Shape: (removed,), as the two that follow.
    tokens (NDArray[int64]): Positions in the document.
    values (NDArray[float64]): O-values.
    n_candidates (int): How many "O" tokens there were to choose from.
    """

    docs: NDArray[np.uint64]
    tokens: NDArray[np.int64]
    values: NDArray[np.float64]
    n_candidates: int

    def __len__(self) -> int:
        return len(self.docs)

    @cached_property
    def _by_doc(self) -> dict[int, NDArray[np.int64]]:
        order = np.lexsort((self.tokens, self.docs))
        keys, first = np.unique(self.docs[order], return_index=True)
        groups = np.split(self.tokens[order], first[1:])
        return {int(key): group for key, group in zip(keys, groups, strict=False)}

    def in_doc(self, key: int) -> NDArray[np.int64]:
        """key (int): The document's key.
        RETURNS (NDArray[int64]): Its removed tokens, ascending. Shape: (removed in document,).
        """
        return self._by_doc.get(key % 2**64, np.zeros(0, dtype=np.int64))

    def mask(self, keys: Sequence[int], lengths: Sequence[int]) -> NDArray[np.bool_]:
        """keys (Sequence[int]): The keys of a batch's documents.
        lengths (Sequence[int]): Their numbers of tokens.
        RETURNS (NDArray[bool]): Whether each token of the batch is removed. Shape: (tokens,).
        """
        mask = np.zeros(sum(lengths), dtype=bool)
        start = 0
        for key, length in zip(keys, lengths, strict=True):
            mask[start + self.in_doc(key)] = True
            start += length
        return mask

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """RETURNS (Dict[str, NDArray]): For saving with numpy or in bytes."""
        return {
            "docs": self.docs,
            "tokens": self.tokens,
            "values": self.values,
            "n_candidates": np.array(self.n_candidates),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> "RemovedTokens":
        """arrays (Mapping[str, NDArray]): From `to_arrays`."""
        return cls(
            docs=arrays["docs"].astype(np.uint64),
            tokens=arrays["tokens"].astype(np.int64),
            values=arrays["values"].astype(np.float64),
            n_candidates=int(arrays["n_candidates"]),
        )

    def to_json_lines(self) -> Iterator[str]:
        """YIELDS (str): First the number of candidates, then a line for each token in the order of
        the ranking. More keys may be added to a line: reading ignores them.
        """
        yield json.dumps({"n_candidates": self.n_candidates, "n_removed": len(self)})
        for i in range(len(self)):
            yield json.dumps(
                {
                    "rank": i + 1,
                    "doc": int(self.docs[i]),
                    "token": int(self.tokens[i]),
                    "o_value": float(self.values[i]),
                }
            )

    @classmethod
    def from_json_lines(cls, lines: Iterable[str]) -> "RemovedTokens":
        """lines (Iterable[str]): As from `to_json_lines`."""
        n_candidates, rows, n_lines = 0, [], 0
        for n_lines, line in enumerate(lines, 1):
            try:
                record = json.loads(line)
                if n_lines == 1:
                    n_candidates = int(record["n_candidates"])
                else:
                    rows.append((record["doc"], record["token"], record["o_value"]))
            except (ValueError, KeyError, TypeError) as error:
                reason = f"{type(error).__name__}: {error}"
                raise ValueError(Errors.R154.format(line=n_lines, reason=reason)) from error
        if not n_lines:
            raise ValueError(Errors.R154.format(line=1, reason="the file is empty"))
        docs, tokens, values = zip(*rows, strict=True) if rows else ((), (), ())
        return cls(
            docs=np.array(docs, dtype=np.uint64),
            tokens=np.array(tokens, dtype=np.int64),
            values=np.array(values, dtype=np.float64),
            n_candidates=n_candidates,
        )


class OValueRanking:
    """Collects the O-values of all "O" tokens of the training set, and removes the lowest."""

    def __init__(self) -> None:
        self._docs: list[NDArray[np.uint64]] = []
        self._tokens: list[NDArray[np.int64]] = []
        self._values: list[NDArray[np.float64]] = []

    def add(self, key: int, tokens: NDArray[np.int64], values: NDArray[np.float64]) -> None:
        """key (int): The document's key, a number of up to 64 bits.
        tokens (NDArray[int64]): Positions of its "O" tokens. Shape: (tokens,).
        values (NDArray[float64]): Their O-values. Shape: (tokens,).
        """
        self._docs.append(np.full(len(tokens), key % 2**64, dtype=np.uint64))
        self._tokens.append(np.asarray(tokens, dtype=np.int64))
        self._values.append(np.asarray(values, dtype=np.float64))

    def __len__(self) -> int:
        return sum(map(len, self._values))

    def select(self, share: float) -> RemovedTokens:
        """Choose the ⌈share · m⌉ lowest of all m values. Of equal values, the one of the lower
        document key and token comes first, whatever the order in which they were added.

        share (float): λ, the share to remove.
        RETURNS (RemovedTokens): What to remove.
        """
        if not 0 <= share <= 1:
            raise ValueError(
                Errors.R103.format(name="share", value=share, wanted="a share between 0 and 1")
            )
        docs = np.concatenate([np.zeros(0, dtype=np.uint64), *self._docs])
        tokens = np.concatenate([np.zeros(0, dtype=np.int64), *self._tokens])
        values = np.concatenate([np.zeros(0), *self._values])
        # A hair down, so that .07 * 100 tokens are 7 and not 8.
        count = math.ceil(share * len(values) - 1e-9)
        order = np.lexsort((tokens, docs, values))[:count]
        return RemovedTokens(docs[order], tokens[order], values[order], len(values))
