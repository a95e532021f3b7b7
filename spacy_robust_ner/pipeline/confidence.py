"""First-stage confidence for the Conf-MPU loss: how probably is a span an entity?"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
import spacy
import torch
from numpy.typing import NDArray
from spacy.language import Language
from spacy.tokens import Doc
from torch import Tensor

from ..candidates import Candidates, CandidateTable
from ..errors import Errors
from ..span.objective import ConfidenceReader
from .span_batch import run_component


@runtime_checkable
class ConfidenceSource(Protocol):
    """Knows the confidence of spans of training documents."""

    def reader(self, docs: Sequence[Doc], table: CandidateTable) -> ConfidenceReader:
        """docs (Sequence[Doc]): The documents of a batch.
        table (CandidateTable): Their candidates.
        RETURNS (ConfidenceReader): Looks candidates up.
        """
        ...


def text_key(doc: Doc) -> tuple[str, ...]:
    """RETURNS (Tuple[str, ...]): What identifies a document."""
    return tuple(token.text for token in doc)


class FileConfidence:
    """Reads confidences from a JSONL file with "tokens" and "spans" ([start, end, confidence]);
    spans that are not listed have confidence 0.

    path (Path): The file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._spans: dict[tuple[str, ...], dict[tuple[int, int], float]] | None = None

    def _read(self) -> dict[tuple[str, ...], dict[tuple[int, int], float]]:
        """The file is not there any more when the trained pipeline is used elsewhere, so that it
        must not be opened before training."""
        if not self.path.is_file():
            raise ValueError(Errors.R121.format(path=self.path))
        known = {}
        with self.path.open(encoding="utf8") as lines:
            for number, line in enumerate(lines, 1):
                try:
                    entry = json.loads(line)
                    spans = {(int(s), int(e)): float(c) for s, e, c in entry["spans"]}
                    known[tuple(entry["tokens"])] = spans
                except (ValueError, KeyError, TypeError) as error:
                    raise ValueError(
                        Errors.R118.format(line=number, path=self.path, reason=error)
                    ) from error
        return known

    def reader(self, docs: Sequence[Doc], table: CandidateTable) -> ConfidenceReader:
        """See ConfidenceSource."""
        if self._spans is None:
            self._spans = self._read()
        known = []
        for doc in docs:
            spans = self._spans.get(text_key(doc))
            if spans is None:
                raise ValueError(Errors.R117.format(path=self.path, text=doc.text[:60]))
            known.append(spans)

        def read(candidates: Candidates) -> Tensor:
            offsets = table.doc_starts[candidates.doc_index]
            places = zip(
                candidates.doc_index.tolist(),
                (candidates.starts - offsets).tolist(),
                (candidates.ends - offsets).tolist(),
                strict=True,
            )
            return torch.tensor(
                [known[doc].get((start, end), 0.0) for doc, start, end in places],
                dtype=torch.float32,
            )

        return read


class PipelineConfidence:
    """Asks a trained first-stage pipeline, once for each document.

    path (Optional[Union[Path, str]]): The pipeline's directory, or the name of its package. It has
        to be there when training starts.
    """

    def __init__(self, path: Path | str | None) -> None:
        self.path = path
        self._nlp: Language | None = None
        self._cache: dict[tuple[str, ...], NDArray[np.float32]] = {}

    def reader(self, docs: Sequence[Doc], table: CandidateTable) -> ConfidenceReader:
        """See ConfidenceSource."""
        new = [doc for doc in docs if text_key(doc) not in self._cache]
        if new:
            for doc, probabilities in zip(new, self._ask(new, table.max_width), strict=True):
                self._cache[text_key(doc)] = probabilities
        confidences = [self._cache[text_key(doc)] for doc in docs]
        rows = np.concatenate([np.empty(0, dtype=np.float32), *confidences])

        def read(candidates: Candidates) -> Tensor:
            return torch.from_numpy(rows[candidates.rows])

        return read

    def _ask(self, docs: Sequence[Doc], max_width: int | None) -> list[NDArray[np.float32]]:
        if self.path is None:
            raise ValueError(Errors.R141)
        if self._nlp is None:
            self._nlp = spacy.load(self.path)
        copies = [
            Doc(
                self._nlp.vocab,
                words=[token.text for token in doc],
                spaces=[bool(token.whitespace_) for token in doc],
            )
            for doc in docs
        ]
        for _, component in self._nlp.pipeline:
            ask = getattr(component, "entity_probabilities", None)
            if ask is not None:
                answer: list[NDArray[np.float32]] = ask(copies, max_width=max_width)
                return answer
            copies = run_component(component, copies)
        raise ValueError(Errors.R119.format(path=self.path))


def make_file_confidence_v1(path: Path) -> ConfidenceSource:
    """Confidence from a file; see FileConfidence."""
    return FileConfidence(Path(path))


def make_pipeline_confidence_v1(path: Path | str | None) -> ConfidenceSource:
    """Confidence from a first-stage pipeline; see PipelineConfidence."""
    return PipelineConfidence(path)
