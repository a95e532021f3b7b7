"""Weights of the weighted partial CRF: which tags unknown tokens probably have."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from torch import Tensor

from ..errors import Errors
from ..tagging.losses import CRFLikelihood, PartialCRF, check_choice
from ..tagging.tag_set import TagSet
from ..tagging.targets import hard_completion, soft_completion
from .span_batch import doc_key, words_key
from .token_losses import CompletedPartialCRF, TokenLossBlock
from .trial import trial

if TYPE_CHECKING:
    from .token_tagger import RobustTokenTagger

CompletionKind = Literal["hard", "soft"]
StartingPoint = Literal["outside", "partial"]
Weights = dict[int, NDArray[np.float32]]


def _joined(known: Weights, docs: Iterable[Doc], n_tags: int, unknown: str) -> NDArray[np.float32]:
    rows = [np.empty((0, n_tags), dtype=np.float32)]
    for doc in docs:
        if len(doc):
            weights = known.get(doc_key(doc))
            if weights is None:
                raise ValueError(unknown.format(text=doc.text[:60]))
            rows.append(weights)
    return np.concatenate(rows)


class FileCompletion:
    """Reads weights from a JSONL file with "tokens" and "q", an object of tags and probabilities
    for each token.

    path (Path): The file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._known: Weights | None = None

    def prepare(
        self, nlp: Language, pipe: "RobustTokenTagger", examples: Sequence[Example]
    ) -> None:
        """See CompletionSource."""
        self._known = self._read(pipe.tag_set)

    def log_weights(self, docs: Sequence[Doc], tag_set: TagSet) -> NDArray[np.float32]:
        """See CompletionSource."""
        if self._known is None:
            self._known = self._read(tag_set)
        return _joined(self._known, docs, len(tag_set), Errors.R186)

    def _read(self, tag_set: TagSet) -> Weights:
        if not self.path.is_file():
            raise ValueError(Errors.R187.format(path=self.path))
        columns = {tag: i for i, tag in enumerate(tag_set.tags)}
        known: Weights = {}
        with self.path.open(encoding="utf8") as lines:
            for number, line in enumerate(lines, 1):
                try:
                    record = json.loads(line)
                    words = record["tokens"]
                    weights = np.zeros((len(words), len(columns)), dtype=np.float32)
                    for i, tags in enumerate(record["q"]):
                        for tag, probability in tags.items():
                            weights[i, columns[tag]] = probability
                except (ValueError, KeyError, TypeError, IndexError) as error:
                    reason = f"{type(error).__name__}: {error}"
                    raise ValueError(
                        Errors.R188.format(line=number, path=self.path, reason=reason)
                    ) from error
                with np.errstate(divide="ignore"):
                    known[words_key(words)] = np.log(weights)
        return known


class CrossFitting:
    """Fits models on parts of the training data, each of which says what it thinks of the part
    that it has not seen (Jie et al. 2019). The next round of models is trained with these weights.

    folds (int): Into how many parts the training data are split.
    iterations (int): Rounds.
    epochs (int): Epochs that a model is trained for.
    kind (str): "hard" for the best tags, "soft" for their probabilities.
    start (str): What the first models are told about unknown tokens: "outside" that they are what
        the annotation says, "partial" nothing.
    write_to (Optional[Path]): Write the weights here, for FileCompletion.
    """

    def __init__(
        self,
        *,
        folds: int = 2,
        iterations: int = 1,
        epochs: int = 5,
        kind: CompletionKind = "soft",
        start: StartingPoint = "outside",
        write_to: Path | None = None,
    ) -> None:
        for name, value, least in (("folds", folds, 2), ("iterations", iterations, 1)):
            if value < least:
                raise ValueError(
                    Errors.R103.format(name=name, value=value, wanted=f"at least {least}")
                )
        if epochs < 1:
            raise ValueError(Errors.R103.format(name="epochs", value=epochs, wanted="at least 1"))
        check_choice("kind", kind, ("hard", "soft"))
        check_choice("start", start, ("outside", "partial"))
        self.folds = folds
        self.iterations = iterations
        self.epochs = epochs
        self.kind = kind
        self.start = start
        # A config gives strings.
        self.write_to = None if write_to is None else Path(write_to)
        self._known: Weights | None = None

    def prepare(
        self, nlp: Language, pipe: "RobustTokenTagger", examples: Sequence[Example]
    ) -> None:
        """See CompletionSource."""
        if len(examples) < self.folds:
            raise ValueError(Errors.R190.format(folds=self.folds, count=len(examples)))
        # By content, so that a sentence that comes twice never teaches its own weights.
        fold_of = [doc_key(example.predicted) % self.folds for example in examples]
        unknown_outside = isinstance(pipe.loss, PartialCRF) and pipe.loss.unknown_outside
        partial = PartialCRF(unknown_outside=unknown_outside)
        loss: TokenLossBlock = CRFLikelihood() if self.start == "outside" else partial
        for iteration in range(self.iterations):
            known: Weights = {}
            for fold in range(self.folds):
                seen = [eg for eg, own in zip(examples, fold_of, strict=True) if own != fold]
                unseen = [eg for eg, own in zip(examples, fold_of, strict=True) if own == fold]
                title = f"Round {iteration + 1}, fold {fold + 1}"
                with trial(nlp, pipe, loss=loss) as attempt:
                    if seen:
                        attempt.train(seen, epochs=self.epochs, title=title)
                    for batch, decisions, lengths in attempt.decisions(unseen):
                        rows = self._complete(pipe, partial, batch, decisions, lengths)
                        for example, part in zip(batch, rows, strict=True):
                            known[doc_key(example.predicted)] = part
            self._known = known
            loss = CompletedPartialCRF(self, unknown_outside=unknown_outside)
        if self.write_to is not None:
            docs = [example.predicted for example in examples]
            write_completion(docs, self.log_weights, pipe.tag_set, self.write_to)

    def log_weights(self, docs: Sequence[Doc], tag_set: TagSet) -> NDArray[np.float32]:
        """See CompletionSource."""
        if self._known is None:
            raise ValueError(Errors.R191)
        return _joined(self._known, docs, len(tag_set), Errors.R192)

    def _complete(
        self,
        pipe: "RobustTokenTagger",
        partial: PartialCRF,
        examples: Sequence[Example],
        decisions: Tensor,
        lengths: Tensor,
    ) -> list[NDArray[np.float32]]:
        tag_set, crf = pipe.tag_set, pipe.head.crf
        if crf is None:
            raise ValueError(Errors.R180.format(loss="WeightedPartialCRF"))
        batch = pipe.reader.read(examples, decisions)
        allowed = partial.allowed(batch, tag_set)
        complete = hard_completion if self.kind == "hard" else soft_completion
        log_weights = complete(decisions, lengths, allowed, crf)
        parts = torch.split(log_weights.cpu(), lengths.tolist())
        return [part.numpy() for part in parts]


def write_completion(docs: Sequence[Doc], log_weights: Any, tag_set: TagSet, path: Path) -> None:
    """Write the weights of documents, for FileCompletion.

    docs (Sequence[Doc]): The documents.
    log_weights (Callable): As CompletionSource.log_weights.
    tag_set (TagSet): The tags.
    path (Path): The file.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf8") as file:
        for doc in docs:
            weights = np.exp(log_weights([doc], tag_set))
            rows = [
                {tag_set.tags[i]: float(row[i]) for i in np.flatnonzero(row).tolist()}
                for row in weights
            ]
            record = {"tokens": [token.text for token in doc], "q": rows}
            file.write(json.dumps(record, ensure_ascii=False) + "\n")
