"""Which spans of a batch are candidates, and what the annotation says about each.

The candidates are numbered by document, start and width. The number has a closed formula in both
directions, so nothing needs the whole list: any range of rows can be made on its own.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .errors import Errors

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Candidates:
    """Some candidates.

    rows (Ints): Candidate rows. Shape: (spans,), as all that follow.
    doc_index (Ints): The document of each.
    starts (Ints): First token row in the batch.
    ends (Ints): One after the last token row.
    """

    rows: Ints
    doc_index: Ints
    starts: Ints
    ends: Ints

    def __len__(self) -> int:
        return len(self.rows)


class CandidateTable:
    """All spans of a batch of documents up to a width, without listing them.

    lengths (Sequence[int]): Tokens a document.
    max_width (Optional[int]): Tokens in the widest candidate; None for all spans.
    """

    def __init__(self, lengths: Sequence[int] | Ints, *, max_width: int | None) -> None:
        if max_width is not None and max_width < 1:
            raise ValueError(Errors.R100.format(max_width=max_width))
        self.lengths: Ints = np.asarray(lengths, dtype=np.int64)
        self.max_width = max_width
        self.doc_starts: Ints = np.concatenate(([0], np.cumsum(self.lengths)))
        self.doc_rows: Ints = np.concatenate(([0], np.cumsum(self._rows_before(self.lengths))))

    def __len__(self) -> int:
        return int(self.doc_rows[-1])

    @property
    def n_tokens(self) -> int:
        """RETURNS (int): Tokens in the batch."""
        return int(self.doc_starts[-1])

    @cached_property
    def _tokens(self) -> tuple[Ints, Ints]:
        """RETURNS (Tuple[Ints, Ints]): The document of each token, and the first candidate row
        that starts with it.
        """
        docs = np.repeat(np.arange(len(self.lengths)), self.lengths)
        positions = np.arange(self.n_tokens) - self.doc_starts[docs]
        return docs, self.doc_rows[docs] + self._rows_before(positions, docs)

    def _rows_before(self, position: Ints, doc_index: Ints | None = None) -> Ints:
        """RETURNS (Ints): How many candidates of a document start before a position in it."""
        lengths = self.lengths if doc_index is None else self.lengths[doc_index]
        width = lengths if self.max_width is None else np.minimum(lengths, self.max_width)
        # Up to this position every start has all widths; from there one less at each token.
        full = np.minimum(position, lengths - width)
        rest = position - full
        return full * width + rest * width - rest * (rest - 1) // 2

    def rows_of(self, doc_index: Ints, starts: Ints, ends: Ints) -> Ints:
        """Look up spans.

        doc_index (Ints): The document of each span. Shape: (spans,).
        starts (Ints): First tokens, counted in the document. Shape: (spans,).
        ends (Ints): One after the last tokens, counted likewise. Shape: (spans,).
        RETURNS (Ints): Candidate rows, -1 for spans that are wider than the limit.
            Shape: (spans,).
        """
        doc_index, starts, ends = (
            np.asarray(values, dtype=np.int64) for values in (doc_index, starts, ends)
        )
        outside = (doc_index < 0) | (doc_index >= len(self.lengths))
        if not outside.any():
            outside = (starts < 0) | (ends <= starts) | (ends > self.lengths[doc_index])
        if outside.any():
            at = int(np.flatnonzero(outside)[0])
            raise ValueError(Errors.R101.format(start=starts[at], end=ends[at], doc=doc_index[at]))
        rows = self.doc_rows[doc_index] + self._rows_before(starts, doc_index) + ends - starts - 1
        if self.max_width is not None:
            rows[ends - starts > self.max_width] = -1
        return rows

    def spans(self, first: int = 0, last: int | None = None) -> Candidates:
        """List a range of candidates.

        first (int): The first row.
        last (Optional[int]): One after the last row; None for the end of the table.
        RETURNS (Candidates): These spans.
        """
        last = len(self) if last is None else min(last, len(self))
        token_docs, token_rows = self._tokens
        if first == 0 and last == len(self):
            widths = np.diff(token_rows, append=np.int64(len(self)))
            starts = np.repeat(np.arange(self.n_tokens), widths)
            rows = np.arange(len(self))
            ends = starts + rows - token_rows[starts] + 1
            return Candidates(rows=rows, doc_index=token_docs[starts], starts=starts, ends=ends)
        return self.spans_at(np.arange(first, max(first, last)))

    def spans_at(self, rows: Ints) -> Candidates:
        """List some candidates.

        rows (Ints): Candidate rows, in any order. Shape: (spans,).
        RETURNS (Candidates): These spans.
        """
        token_docs, token_rows = self._tokens
        starts = np.searchsorted(token_rows, rows, side="right") - 1
        ends = starts + rows - token_rows[starts] + 1
        return Candidates(rows=rows, doc_index=token_docs[starts], starts=starts, ends=ends)

    def chunks(self, budget: int) -> Iterator[Candidates]:
        """Go through all candidates in pieces; long documents are split over several.

        budget (int): The greatest number of candidates in a piece.
        YIELDS (Candidates): Consecutive ranges of rows; nothing for an empty table.
        """
        if budget < 1:
            raise ValueError(Errors.R102.format(budget=budget))
        for first in range(0, len(self), budget):
            yield self.spans(first, first + budget)


@dataclass(frozen=True)
class BatchAnnotation:
    """What the annotation says about the candidates of a batch.

    positive_rows (Ints): Rows of labelled spans, ascending, each once. Shape: (positives,).
    positive_labels (Ints): Their label columns. Shape: (positives,).
    rejected_rows (Ints): Rows of rejected spans, ascending. Shape: (rejected,).
    missing_before (Ints): Missing tokens before each token row. Shape: (tokens + 1,).
    complete (Bools): Documents whose every "O" is vouched for. Shape: (documents,).
    n_too_wide (int): Labelled spans that no candidate stands for.
    excluding_before (Ints): Tokens before each token row that only a labelled span may contain.
        Shape: (tokens + 1,).
    """

    positive_rows: Ints
    positive_labels: Ints
    rejected_rows: Ints
    missing_before: Ints
    excluding_before: Ints
    complete: Bools
    n_too_wide: int = 0

    # All three take a range of rows, as `CandidateTable.chunks` makes them.

    def is_positive(self, spans: Candidates) -> Bools:
        """RETURNS (Bools): Labelled spans. Shape: (spans,)."""
        return _contains(self.positive_rows, spans)

    def is_unknown(self, spans: Candidates) -> Bools:
        """RETURNS (Bools): Spans that touch a missing token, unless they are labelled or
        rejected, where somebody has looked at them, or excluded. Shape: (spans,).
        """
        touches = self.missing_before[spans.ends] > self.missing_before[spans.starts]
        known = self.is_positive(spans) | _contains(self.rejected_rows, spans)
        return touches & ~known & ~self._is_excluded(spans)

    def is_true_negative(self, spans: Candidates) -> Bools:
        """RETURNS (Bools): Spans that are certainly no entity: rejected ones, those that contain a
        token which excludes them, and all that is neither labelled nor unknown in a complete
        document. Shape: (spans,).
        """
        known = self.complete[spans.doc_index] & ~self.is_unknown(spans)
        known |= _contains(self.rejected_rows, spans) | self._is_excluded(spans)
        return known & ~self.is_positive(spans)

    def _is_excluded(self, spans: Candidates) -> Bools:
        """RETURNS (Bools): Spans with a token that only a labelled span may contain.
        Shape: (spans,).
        """
        return self.excluding_before[spans.ends] > self.excluding_before[spans.starts]


def annotate(
    table: CandidateTable,
    *,
    doc_index: Ints,
    starts: Ints,
    ends: Ints,
    labels: Ints,
    missing: Bools | None = None,
    complete: Bools | None = None,
    rejected: tuple[Ints, Ints, Ints] | None = None,
    outside: Bools | None = None,
    flat: bool = False,
) -> BatchAnnotation:
    """Bring the annotation of a batch into the order of its candidates.

    table (CandidateTable): The candidates.
    doc_index (Ints): The document of each labelled span. Shape: (gold,), as the next three.
    starts (Ints): First tokens, counted in the document.
    ends (Ints): One after the last tokens.
    labels (Ints): Label columns. Of several labels of one span the first counts.
    missing (Optional[Bools]): Tokens of the batch whose annotation is missing. Shape: (tokens,).
    complete (Optional[Bools]): Documents whose every "O" is vouched for. Shape: (documents,).
    rejected (Optional[Tuple[Ints, Ints, Ints]]): Documents, starts and ends of rejected spans. A
        span that is labelled as well counts as labelled.
    outside (Optional[Bools]): Tokens of the batch that are in no entity but a labelled one.
        Shape: (tokens,).
    flat (bool): Entities never overlap, so that a span which overlaps a labelled one is certainly
        no entity.
    RETURNS (BatchAnnotation): The annotation.
    """
    rows = table.rows_of(doc_index, starts, ends)
    found = rows >= 0
    positive_rows, first_of_each = np.unique(rows[found], return_index=True)
    rejected_rows = np.empty(0, dtype=np.int64)
    if rejected is not None:
        rejected_rows = np.unique(table.rows_of(*rejected))
        rejected_rows = rejected_rows[rejected_rows >= 0]
    if missing is None:
        missing = np.zeros(table.n_tokens, dtype=bool)
    if complete is None:
        complete = np.zeros(len(table.lengths), dtype=bool)
    excluding = np.zeros(table.n_tokens, dtype=bool) if outside is None else outside
    if flat:
        excluding = excluding | _tokens_of(table, doc_index, starts, ends)
    return BatchAnnotation(
        positive_rows=positive_rows,
        positive_labels=np.asarray(labels, dtype=np.int64)[found][first_of_each],
        rejected_rows=np.setdiff1d(rejected_rows, positive_rows, assume_unique=True),
        missing_before=_number_before(missing),
        excluding_before=_number_before(excluding),
        complete=np.asarray(complete, dtype=bool),
        n_too_wide=int((~found).sum()),
    )


def _number_before(tokens: Bools) -> Ints:
    """RETURNS (Ints): How many of some tokens lie before each token. Shape: (tokens + 1,)."""
    return np.concatenate(([0], np.cumsum(tokens, dtype=np.int64)))


def _tokens_of(table: CandidateTable, doc_index: Ints, starts: Ints, ends: Ints) -> Bools:
    """RETURNS (Bools): The tokens of some spans. Shape: (tokens,)."""
    offsets = table.doc_starts[np.asarray(doc_index, dtype=np.int64)]
    borders = np.zeros(table.n_tokens + 1, dtype=np.int64)
    np.add.at(borders, offsets + starts, 1)
    np.add.at(borders, offsets + ends, -1)
    return np.cumsum(borders)[:-1] > 0


def _contains(rows: Ints, spans: Candidates) -> Bools:
    mask = np.zeros(len(spans), dtype=bool)
    if len(spans) and len(rows):
        low, high = np.searchsorted(rows, (spans.rows[0], spans.rows[-1] + 1))
        mask[rows[low:high] - spans.rows[0]] = True
    return mask
