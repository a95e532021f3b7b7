"""How probable spans become entities in the course of training: labeled ones, those that were
overlooked, and those that training took as negatives.

A model that memorizes its negatives gives up the overlooked entities among them, late in training;
a robust one does not (Kang et al. 2022, figures 4 to 7).
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from spacy.language import Language
from spacy.tokens import Doc
from torch import Tensor

from ..candidates import CandidateTable
from ..pipeline.span_batch import doc_key, process_before
from ..pipeline.span_ner import RobustSpanNER
from .evaluation import bare_copy

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

LABELED = "labeled entities"
UNLABELED = "unlabeled entities"
NEGATIVES = "sampled negatives"
MISSAMPLED = "sampled negatives that are unlabeled entities"
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
BINS = 20


@dataclass(frozen=True)
class Distribution:
    """The entity probabilities of some spans.

    count (int): How many spans.
    mean (float): Their mean probability.
    likely (float): The share of those with a probability over one half.
    quantiles (List[float]): At QUANTILES.
    histogram (List[int]): Counts in BINS bins of equal width.
    """

    count: int
    mean: float
    likely: float
    quantiles: list[float]
    histogram: list[int]

    @classmethod
    def of(cls, values: Floats) -> "Distribution | None":
        """RETURNS (Optional[Distribution]): The figures, or None of no values."""
        if not len(values):
            return None
        return cls(
            count=len(values),
            mean=float(values.mean()),
            likely=float((values > 0.5).mean()),
            quantiles=np.quantile(values, QUANTILES).tolist(),
            histogram=np.histogram(values, BINS, (0, 1))[0].tolist(),
        )


@dataclass(frozen=True)
class Stage:
    """Where training stood.

    epochs (int): Completed epochs.
    groups (Dict[str, Distribution]): The probabilities of each group of spans that there are. The
        negatives are those of the epoch that was just completed.
    texts (Dict[str, List[float]]): The probability of each mention of the followed texts.
    """

    epochs: int
    groups: dict[str, Distribution]
    texts: dict[str, list[float]]


@dataclass(frozen=True)
class FollowedDoc:
    """A training document.

    doc (Doc): With the tokens of the pipeline.
    labeled (List[Tuple[int, int]]): Start and end of the entities that training knows.
    gold (Optional[List[Tuple[int, int]]]): Start and end of all entities, if they are known.
    """

    doc: Doc
    labeled: list[tuple[int, int]]
    gold: list[tuple[int, int]] | None = None


@dataclass
class SpanCourse:
    """Follows the spans of some training documents. It is the `sample_observer` of a component,
    and `record` is to be called whenever an epoch is completed.

    nlp (Language): The pipeline.
    component (RobustSpanNER): Its component.
    followed (Sequence[FollowedDoc]): Training documents.
    texts (Sequence[str]): Strings whose mentions are to be followed.
    batch_size (int): Documents a batch.
    """

    nlp: Language
    component: RobustSpanNER
    followed: Sequence[FollowedDoc]
    texts: Sequence[str] = ()
    batch_size: int = 32
    stages: list[Stage] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        lengths = [len(item.doc) for item in self.followed]
        self._table = CandidateTable(lengths, max_width=self.component.max_width)
        self._place = {doc_key(item.doc): i for i, item in enumerate(self.followed)}
        self._labeled = self._entity_rows([item.labeled for item in self.followed])
        everything = self._entity_rows([item.gold or [] for item in self.followed])
        self._unlabeled = np.setdiff1d(everything, self._labeled)
        self._mentions = {text: self._mention_rows(text) for text in self.texts}
        self._sampled: list[Ints] = []

    def __call__(
        self, doc_keys: Sequence[int], doc_index: Tensor, starts: Tensor, ends: Tensor
    ) -> None:
        """Take note of the negatives of a batch; see SampleObserver."""
        places = np.array([self._place.get(key, -1) for key in doc_keys], dtype=np.int64)
        place = places[doc_index.cpu().numpy()]
        own = place >= 0
        self._sampled.append(
            self._table.rows_of(place[own], starts.cpu().numpy()[own], ends.cpu().numpy()[own])
        )

    def record(self, epochs: int) -> Stage:
        """Score the spans with the present weights.

        epochs (int): Completed epochs.
        RETURNS (Stage): What is added to the stages.
        """
        probabilities = self._probabilities()
        sampled = np.unique(np.concatenate(self._sampled)) if self._sampled else self._labeled[:0]
        self._sampled.clear()
        missampled = np.intersect1d(sampled, self._unlabeled)
        rows = {
            LABELED: self._labeled,
            UNLABELED: self._unlabeled,
            NEGATIVES: np.setdiff1d(sampled, missampled),
            MISSAMPLED: missampled,
        }
        groups = {name: Distribution.of(probabilities[own]) for name, own in rows.items()}
        stage = Stage(
            epochs=epochs,
            groups={name: group for name, group in groups.items() if group is not None},
            texts={text: probabilities[own].tolist() for text, own in self._mentions.items()},
        )
        self.stages.append(stage)
        return stage

    def count_mentions(self, text: str) -> int:
        """RETURNS (int): How many spans of the followed documents are this text."""
        return len(self._mentions[text])

    def as_dict(self) -> dict[str, Any]:
        """RETURNS (Dict[str, Any]): The figures, for JSON."""
        return {"documents": len(self.followed), "stages": [asdict(stage) for stage in self.stages]}

    def _probabilities(self) -> Floats:
        found: list[NDArray[np.float32]] = []
        for first in range(0, len(self.followed), self.batch_size):
            batch = self.followed[first : first + self.batch_size]
            bare = [bare_copy(item.doc, self.nlp) for item in batch]
            found += self.component.entity_probabilities(
                process_before(self.nlp, self.component.name, bare),
                max_width=self.component.max_width,
            )
        return np.concatenate(found).astype(np.float64)

    def _entity_rows(self, entities: Iterable[list[tuple[int, int]]]) -> Ints:
        return self._rows([(i, start, end) for i, own in enumerate(entities) for start, end in own])

    def _mention_rows(self, text: str) -> Ints:
        spans = []
        for i, item in enumerate(self.followed):
            for match in _positions(item.doc.text, text):
                span = item.doc.char_span(match, match + len(text))
                if span is not None:
                    spans.append((i, span.start, span.end))
        return self._rows(spans)

    def _rows(self, spans: Sequence[tuple[int, int, int]]) -> Ints:
        columns = np.array(spans, dtype=np.int64).reshape(-1, 3).T
        rows = self._table.rows_of(columns[0], columns[1], columns[2])
        return np.unique(rows[rows >= 0])


def _positions(text: str, part: str) -> Iterable[int]:
    place = text.find(part)
    while place >= 0:
        yield place
        place = text.find(part, place + 1)
