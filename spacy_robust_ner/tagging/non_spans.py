"""Negative sampling for tokens: some spans without an entity get tags of their own.

The spans are drawn anew in each epoch. The draw depends on the seed, the epoch and the document
alone, so that the order of the documents and a resumed run change nothing.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import Errors
from ..span.hashing import hashed_uniform
from .tag_set import OUTSIDE_TAG, TagSet

Ints = NDArray[np.int64]

# Proposals for each span that is wanted; what they don't give is drawn from what is left.
_PROPOSALS = 8


class _Spans(NamedTuple):
    """starts (NDArray[int64]): First tokens, counted in the batch. Shape: (spans,).
    ends (NDArray[int64]): One after the last tokens. Shape: (spans,).
    """

    starts: Ints
    ends: Ints


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

    def draw(
        self,
        is_free: NDArray[np.bool_],
        lengths: Sequence[int],
        *,
        keys: Sequence[int],
        epoch: int,
    ) -> list[tuple[int, int]]:
        """Draw one span after another, each with the same chance among those that still fit.

        is_free (NDArray[bool]): Which tokens of the batch are "O" and not removed, the documents
            one after another. Shape: (tokens,).
        lengths (Sequence[int]): Tokens a document.
        keys (Sequence[int]): A number for each document that stays the same whenever it comes
            back.
        epoch (int): The current epoch.
        RETURNS (List[Tuple[int, int]]): Starts and ends, counted in the batch, in order.
        """
        sizes = np.asarray(lengths, dtype=np.int64)
        doc_ends = np.cumsum(sizes)
        doc_starts = doc_ends - sizes
        table = _SpanTable(is_free, np.repeat(doc_ends, sizes), self.max_width)
        n_spans = table.before[doc_ends] - table.before[doc_starts]
        wanted = np.ceil(self.rate * sizes - 1e-9).astype(np.int64) * (n_spans > 0)
        n_tries = _PROPOSALS * wanted
        docs = np.repeat(np.arange(len(sizes)), n_tries)
        first = np.cumsum(n_tries) - n_tries
        tries = np.arange(len(docs)) - first[docs]
        numbers = hashed_uniform(self.seed, epoch, keys, docs, tries)
        # Drawing anew whatever doesn't fit any more is drawing from what still fits.
        rows = (numbers * n_spans[docs]).astype(np.int64) + table.before[doc_starts][docs]
        starts, ends = (column.tolist() for column in table.spans(rows))
        taken = bytearray(len(is_free))
        chosen: list[tuple[int, int]] = []
        for doc in np.flatnonzero(wanted).tolist():
            of_doc = slice(first[doc], first[doc] + n_tries[doc])
            left = int(wanted[doc])
            left -= _take(starts[of_doc], ends[of_doc], left, taken, chosen)
            if left:
                of_doc = slice(doc_starts[doc], doc_ends[doc])
                still_free = is_free[of_doc] & (np.frombuffer(taken[of_doc], np.uint8) == 0)
                rest = _SpanTable(still_free, np.full(sizes[doc], sizes[doc]), self.max_width)
                rng = np.random.default_rng((self.seed % 2**64, epoch, keys[doc] % 2**64))
                spans = rest.spans(rng.permutation(rest.before[-1]))
                starts_left, ends_left = (part + doc_starts[doc] for part in spans)
                _take(starts_left.tolist(), ends_left.tolist(), left, taken, chosen)
        return sorted(chosen)

    def apply(
        self,
        tags: Ints,
        removed: NDArray[np.bool_] | None,
        lengths: Sequence[int],
        tag_set: TagSet,
        *,
        keys: Sequence[int],
        epoch: int,
    ) -> Ints:
        """Give the spans of this epoch their tags.

        tags (NDArray[int64]): The annotated tags of a batch, the documents one after another.
            Shape: (tokens,).
        removed (Optional[NDArray[bool]]): Which tokens are removed. Shape: (tokens,).
        lengths (Sequence[int]): Tokens a document.
        tag_set (TagSet): A tag set with the type NON.
        keys (Sequence[int]): See `draw`.
        epoch (int): The current epoch.
        RETURNS (NDArray[int64]): Tags with NON spans, a new array. Shape: (tokens,).
        """
        if tag_set.non_type is None:
            raise ValueError(Errors.R104.format(part="NON sampling", value="with_non_entity"))
        is_free = tags == OUTSIDE_TAG
        if removed is not None:
            is_free &= ~removed
        spans = self.draw(is_free, lengths, keys=keys, epoch=epoch)
        drawn = tag_set.encode([(*span, tag_set.non_type) for span in spans], len(tags))
        return np.where(drawn == OUTSIDE_TAG, tags, drawn)


class _SpanTable:
    """All spans within free tokens, by number, without writing them all down.

    is_free (NDArray[bool]): Which tokens are free. Shape: (tokens,).
    doc_ends (NDArray[int64]): Where the document of each token ends. Shape: (tokens,).
    max_width (int): Tokens of the widest span.
    before (NDArray[int64]): How many spans start before each token, and how many there are.
        Shape: (tokens + 1,).
    """

    def __init__(self, is_free: NDArray[np.bool_], doc_ends: Ints, max_width: int) -> None:
        positions = np.arange(len(is_free))
        # The next token that is not free, for each token.
        blocked = np.where(is_free, doc_ends, positions)
        room = np.minimum.accumulate(blocked[::-1])[::-1] - positions
        self.before: Ints = np.zeros(len(is_free) + 1, dtype=np.int64)
        np.cumsum(np.minimum(room, max_width), out=self.before[1:])

    def spans(self, rows: Ints) -> _Spans:
        """RETURNS (_Spans): The spans with these numbers."""
        starts = np.searchsorted(self.before, rows, side="right") - 1
        return _Spans(starts, starts + rows - self.before[starts] + 1)


def _take(
    starts: list[int],
    ends: list[int],
    wanted: int,
    taken: bytearray,
    chosen: list[tuple[int, int]],
) -> int:
    """RETURNS (int): How many spans were chosen, of which none overlaps with another."""
    found = 0
    for start, end in zip(starts, ends, strict=True):
        if 1 in taken[start:end]:
            continue
        chosen.append((start, end))
        taken[start:end] = b"\1" * (end - start)
        found += 1
        if found == wanted:
            break
    return found
