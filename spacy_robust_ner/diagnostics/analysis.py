"""What the predictions of a run say, read in one pass."""

import heapq
from collections import Counter
from dataclasses import dataclass, field
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from .bootstrap import Counts
from .error_types import Kind, classify, count_kinds
from .passages import Passage, cut_passages
from .results import Prediction, Run, Split


@dataclass(frozen=True)
class RunAnalysis:
    """The predictions of a run, condensed.

    documents (str): A digest of the test documents; equal if the documents are.
    counts (NDArray): True positives, false positives, false negatives of each test document.
        Shape: (test documents, 3).
    scores (NDArray): Probabilities of the predicted entities that have one. Shape: (entities,).
    correct (NDArray): Which of those entities are right. Shape: (entities,).
    kinds (Dict[Split, Counter[Kind]]): How often each kind of error occurs.
    passages (List[Passage]): Passages to look at, at most as many as asked for of each split.
    left_out (Dict[Split, int]): How many passages there are beside those.
    """

    documents: str
    counts: Counts
    scores: NDArray[np.float64]
    correct: NDArray[np.bool_]
    kinds: dict[Split, Counter[Kind]]
    passages: list[Passage]
    left_out: dict[Split, int]


def analyse_run(run: Run, *, limit: int = 0) -> RunAnalysis | None:
    """Read the predictions of a run.

    run (Run): The run.
    limit (int): How many passages to keep of the test and of the training text; with 0 they are
        not even looked for.
    RETURNS (Optional[RunAnalysis]): The figures, or None if the run kept no predictions.
    """
    collected = _Collected(with_passages=limit > 0)
    for document in run.predictions():
        collected.add(document)
    if not collected.documents:
        return None
    chosen, left_out = _choose(collected.passages, limit)
    return RunAnalysis(
        documents=collected.digest.hexdigest(),
        counts=np.array(collected.counts, dtype=np.int64).reshape(-1, 3),
        scores=np.array(collected.scores, dtype=np.float64),
        correct=np.array(collected.correct, dtype=np.bool_),
        kinds=collected.kinds,
        passages=chosen,
        left_out=left_out,
    )


@dataclass
class _Collected:
    with_passages: bool
    documents: int = 0
    counts: list[tuple[int, int, int]] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    correct: list[bool] = field(default_factory=list)
    kinds: dict[Split, Counter[Kind]] = field(default_factory=dict)
    passages: list[Passage] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.digest = blake2b(digest_size=16)

    def add(self, document: Prediction) -> None:
        self.documents += 1
        marks = classify(document)
        self.kinds.setdefault(document.split, Counter()).update(count_kinds(marks))
        if self.with_passages:
            self.passages.extend(cut_passages(document, marks))
        if document.split != "test":
            return
        self.digest.update("\0".join([*document.words, "\n"]).encode("utf8"))
        right = len(document.gold & document.predicted.keys())
        self.counts.append((right, len(document.predicted) - right, len(document.gold) - right))
        for entity, score in document.predicted.items():
            if score is not None:
                self.scores.append(score)
                self.correct.append(entity in document.gold)


def _choose(passages: list[Passage], limit: int) -> tuple[list[Passage], dict[Split, int]]:
    chosen: list[Passage] = []
    left_out: dict[Split, int] = {}
    for split in ("test", "train"):
        own = [(i, passage) for i, passage in enumerate(passages) if passage.split == split]
        kept = heapq.nsmallest(limit, own, key=lambda item: (item[1].rank, item[0]))
        chosen += [passage for _, passage in sorted(kept, key=lambda item: item[0])]
        left_out[split] = len(own) - len(kept)
    return chosen, left_out
