"""What a trained pipeline says about documents, beside what is known about them."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc, Span

from ..annotation import missing_tokens
from ..corpus.io import read_docs
from ..diagnostics.evaluation import (
    Evaluation,
    evaluate_pipeline,
    find_spans_key,
    predict,
    predicted_spans,
)
from ..errors import Errors
from ..pipeline.writing import SCORE_EXTENSION

Record = dict[str, Any]
Entity = tuple[int, int, str]
Scored = tuple[int, int, str, float | None]


@dataclass
class Recovery:
    """How many of the masked training entities a pipeline found in spite of the masking.

    masked (int): The masked entities of the documents that were searched.
    recovered (int): Those that were found.
    recovered_other_label (int): Those that were found under another label.
    """

    masked: int = 0
    recovered: int = 0
    recovered_other_label: int = 0

    def add(self, masked: list[Entity], predicted: list[Entity]) -> None:
        """Count one document.

        masked (List[Entity]): Its masked entities.
        predicted (List[Entity]): What the pipeline found in it.
        """
        found = set(predicted)
        places = {(start, end) for start, end, _ in predicted}
        exact = [entity for entity in masked if entity in found]
        self.masked += len(masked)
        self.recovered += len(exact)
        self.recovered_other_label += sum(e[:2] in places for e in masked) - len(exact)

    def as_dict(self) -> dict[str, int]:
        """RETURNS (Dict[str, int]): The counts, for JSON."""
        return asdict(self)


def test_predictions(nlp: Language, path: Path) -> tuple[Evaluation, list[Record]]:
    """Run a pipeline over a test corpus.

    nlp (Language): The pipeline.
    path (Path): The corpus.
    RETURNS (Tuple[Evaluation, List[Record]]): The figures, and each document with its predictions.
    """
    records: list[Record] = []
    key = find_spans_key(nlp)

    def observe(gold: Doc, predicted: Doc) -> None:
        records.append(_record("test", gold, [], _scored(predicted, key)))

    return evaluate_pipeline(nlp, read_docs(path, nlp.vocab), observe=observe), records


def train_predictions(
    nlp: Language, train: Path, gold: Path, limit: int
) -> tuple[Recovery, list[Record]]:
    """Run a pipeline over training documents whose masked entities are known.

    nlp (Language): The pipeline.
    train (Path): The corpus that it was trained on.
    gold (Path): The same documents with all entities.
    limit (int): How many documents to take, at even distances in the corpus.
    RETURNS (Tuple[Recovery, List[Record]]): The counts, and each document with its predictions.
    """
    recovery = Recovery()
    records = []
    key = find_spans_key(nlp)
    # The documents come out of the pipeline in the order in which they went in.
    masked_in: list[list[Entity]] = []

    def remembered() -> Iterator[Doc]:
        for document, masked in _sampled(nlp, train, gold, limit):
            masked_in.append(masked)
            yield document

    for i, (document, processed) in enumerate(predict(nlp, remembered(), Evaluation())):
        found = _scored(processed, key)
        recovery.add(masked_in[i], [entity[:3] for entity in found])
        records.append(_record("train", document, masked_in[i], found))
    return recovery, records


def _sampled(
    nlp: Language, train: Path, gold: Path, limit: int
) -> Iterator[tuple[Doc, list[Entity]]]:
    """YIELDS (Tuple[Doc, List[Entity]]): Gold documents, and what training did not see of them."""
    total = sum(1 for _ in read_docs(gold, nlp.vocab))
    chosen = {i * total // limit for i in range(limit)} if total > limit else range(total)
    pairs = zip_longest(read_docs(train, nlp.vocab), read_docs(gold, nlp.vocab))
    for i, (seen, document) in enumerate(pairs):
        if seen is None or document is None:
            raise ValueError(Errors.R130.format(number=i + 1, reason="only one of them has it"))
        if [token.text for token in seen] != [token.text for token in document]:
            raise ValueError(Errors.R130.format(number=i + 1, reason="the tokens differ"))
        if i in chosen:
            annotated = set(_triples(seen.ents))
            yield document, [e for e in _triples(document.ents) if e not in annotated]


def _record(split: str, gold: Doc, masked: list[Entity], predicted: list[Scored]) -> Record:
    record = {
        "split": split,
        "words": [token.text for token in gold],
        "spaces": [bool(token.whitespace_) for token in gold],
        "gold": _triples(gold.ents),
        "masked": masked,
        "predicted": predicted,
    }
    missing = [i for i, unknown in enumerate(missing_tokens(gold)) if unknown]
    return {**record, "missing": missing} if missing else record


def _scored(doc: Doc, key: str | None) -> list[Scored]:
    """RETURNS (List[Scored]): The predictions of a processed document, with their probability."""
    spans = predicted_spans(doc, key)
    scores: Iterable[float | None]
    if key is None:
        scores = (span._.get(SCORE_EXTENSION) for span in spans)
    elif key in doc.spans and "scores" in doc.spans[key].attrs:
        scores = np.ravel(doc.spans[key].attrs["scores"]).tolist()
    else:
        scores = (None for _ in spans)
    found = zip(_triples(spans), scores, strict=True)
    return [(*entity, None if score is None else float(score)) for entity, score in found]


def _triples(spans: Iterable[Span]) -> list[Entity]:
    return [(span.start, span.end, span.label_) for span in spans]
