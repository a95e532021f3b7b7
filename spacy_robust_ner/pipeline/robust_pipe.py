"""What both components share: labels, writing, the frame of an update, saving and loading."""

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, cast

from spacy.language import Language
from spacy.pipeline import TrainablePipe
from spacy.tokens import Doc
from spacy.training import Example, validate_examples
from spacy.vocab import Vocab
from thinc.api import Model, set_dropout_rate
from thinc.optimizers import Optimizer
from thinc.types import Floats2d
from thinc.util import torch2xp, xp2torch
from torch import Tensor, zeros_like

from ..annotation import REJECTED_SPANS_KEY
from ..decoding import Overlap, ScoredSpans
from ..errors import Errors, Warnings
from ..span.ratio import Unit
from .label_statistics import (
    count_annotation,
    estimate_ratio,
    judge_fragments,
    report_doubtful,
    report_outside,
)
from .progress import TrainingProgress
from .targets import TargetReader
from .writing import write_entities, write_spans

O_INDEX = 0
OUTSIDE = "O"

# The encoder of a component that is added without a config.
default_tok2vec_config = """
[model.tok2vec]
@architectures = "spacy.HashEmbedCNN.v2"
pretrained_vectors = null
width = 96
depth = 4
embed_size = 2000
window_size = 1
maxout_pieces = 3
subword_features = true
"""

_MODEL_SETTINGS = ("max_width", "chunk_size")


class RobustPipe(TrainablePipe):
    """Base of the robust components. Their model has the references "tok2vec" and "head".

    vocab (Vocab): The shared vocabulary.
    model (Model): From documents to token vectors.
    name (str): The component's name.
    annotate_ents (bool): Write ``doc.ents``.
    overwrite_ents (bool): Replace entities of earlier components, instead of filling the gaps.
    spans_key (Optional[str]): Also write this span group.
    spans_overlap (str): Overlaps in the span group: "flat", "nested" or "all".
    rejected_spans_key (str): Span group of the training data with rejected spans.
    default_complete (bool): What a training document without the flag counts as.
    withdraw_doubtful (bool): Labels of strings that are rather ordinary words (see label_study)
        count as missing in incomplete training documents.
    withdraw_fragments (bool): Labels that seem to be parts of longer names (see fragments) count as
        missing there as well, unless most capitalized words are in no entity.
    outside_by_writing (bool): Where the writing says that there are next to no entities (see
        orthography), a token without a label is in none.
    head_learn_rate_scale (float): Learning rate of the head, as a multiple of the encoder's.
    scorer (Optional[Callable]): Evaluates predictions.
    """

    def __init__(
        self,
        vocab: Vocab,
        model: Model[list[Doc], list[Floats2d]],
        name: str,
        *,
        annotate_ents: bool = True,
        overwrite_ents: bool = False,
        spans_key: str | None = None,
        spans_overlap: Overlap = "nested",
        rejected_spans_key: str = REJECTED_SPANS_KEY,
        default_complete: bool = False,
        withdraw_doubtful: bool = False,
        withdraw_fragments: bool = False,
        outside_by_writing: bool = False,
        head_learn_rate_scale: float = 1.0,
        scorer: Callable[..., dict[str, Any]] | None = None,
    ) -> None:
        if not annotate_ents and spans_key is None:
            raise ValueError(Errors.R115.format(name=name))
        if not head_learn_rate_scale > 0:
            raise ValueError(
                Errors.R103.format(
                    name="head_learn_rate_scale",
                    value=head_learn_rate_scale,
                    wanted="a number above 0",
                )
            )
        self.vocab = vocab
        self.model = model
        self.name = name
        self.annotate_ents = annotate_ents
        self.overwrite_ents = overwrite_ents
        self.spans_key = spans_key
        self.spans_overlap: Overlap = spans_overlap
        self.rejected_spans_key = rejected_spans_key
        self.default_complete = default_complete
        self.withdraw_doubtful = withdraw_doubtful
        self.withdraw_fragments = withdraw_fragments
        self.outside_by_writing = outside_by_writing
        self.head_learn_rate_scale = head_learn_rate_scale
        if spans_key is not None and scorer is not None:
            scorer = partial(scorer, spans_key=spans_key)
        self.scorer = scorer
        self.cfg: dict[str, Any] = {
            "labels": [],
            "label_shares": {},
            "ratio": None,
            "doubtful": [],
            "outside_places": [],
            "without_fragments": True,
            "epoch": 0,
            "examples_per_epoch": None,
        }
        self.progress = TrainingProgress()

    @property
    def labels(self) -> tuple[str, ...]:
        """RETURNS (Tuple[str, ...]): The entity labels."""
        return tuple(self.cfg["labels"])

    @property
    def label_data(self) -> list[str]:
        """RETURNS (List[str]): What `spacy init labels` saves and `initialize` takes."""
        return list(self.labels)

    def add_label(self, label: str) -> int:
        """Add a label before the model is initialized.

        label (str): The label.
        RETURNS (int): 0 if the label is already there, otherwise 1.
        """
        if label in self.labels:
            return 0
        if self.model.has_dim("nO"):
            raise ValueError(
                Errors.R120.format(name=self.name, label=label, labels=", ".join(self.labels))
            )
        self._append_label(label)
        return 1

    def _append_label(self, label: str) -> None:
        if label not in self.labels:
            self.cfg["labels"].append(label)
            self.vocab.strings.add(label)

    @property
    def read_targets(self) -> TargetReader:
        """RETURNS (TargetReader): Reads what training examples say."""
        return TargetReader(
            self.rejected_spans_key,
            self.default_complete,
            frozenset(map(tuple, self.cfg["doubtful"])) if self.withdraw_doubtful else (),
            self.withdraw_fragments and self.cfg["without_fragments"],
            frozenset(self.cfg["outside_places"]) if self.outside_by_writing else frozenset(),
        )

    def _check_score_weights(self, nlp: Language | None) -> None:
        if nlp is None or self.annotate_ents:
            return
        weights = nlp.config["training"]["score_weights"]
        if not any(weights.get(f"spans_{self.spans_key}_{figure}") for figure in "prf"):
            text = Warnings.W103.format(name=self.name, key=self.spans_key)
            warnings.warn(text, stacklevel=3)

    def _study_labels(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        unit: Unit | None,
    ) -> None:
        """Find out which labels are doubtful, where there are no entities and how many to expect,
        if settings ask.

        get_examples (Callable[[], Iterable[Example]]): The training examples; read twice.
        unit (Optional[str]): What an estimated ratio has to count, "spans" or "tokens"; None if
            the component needs none.
        """
        self.cfg.update(ratio=None, doubtful=[], outside_places=[], without_fragments=True)
        doubts = self.withdraw_doubtful, self.withdraw_fragments, self.outside_by_writing
        if unit is None and not any(doubts):
            return
        counts = count_annotation(
            get_examples,
            default_complete=self.default_complete,
            with_doubts=self.withdraw_doubtful,
        )
        self.cfg["doubtful"] = [list(words) for words in counts.findings.doubtful]
        report_doubtful(counts.findings, name=self.name)
        if self.withdraw_fragments:
            self.cfg["without_fragments"] = judge_fragments(counts, name=self.name)
        if self.outside_by_writing:
            self.cfg["outside_places"] = list(counts.findings.outside_places)
            report_outside(counts.findings, name=self.name)
        if unit is not None:
            self.cfg["ratio"] = estimate_ratio(counts, unit=unit, name=self.name)

    def set_annotations(self, docs: Iterable[Doc], scores: Sequence[ScoredSpans]) -> None:
        """Write entities.

        docs (Iterable[Doc]): The documents.
        scores (Sequence[ScoredSpans]): From `predict`.
        """
        names = (OUTSIDE, *self.labels)
        for doc, found in zip(docs, scores, strict=True):
            if self.annotate_ents:
                write_entities(doc, found, names, overwrite=self.overwrite_ents)
            if self.spans_key is not None:
                write_spans(doc, found, names, key=self.spans_key, overlap=self.spans_overlap)

    def update(
        self,
        examples: Iterable[Example],
        *,
        drop: float = 0.0,
        sgd: Optimizer | None = None,
        losses: dict[str, float] | None = None,
    ) -> dict[str, float]:
        """Learn from a batch of examples.

        examples (Iterable[Example]): The examples.
        drop (float): Dropout of the encoder's thinc layers; that of the head is its own setting.
        sgd (Optional[Optimizer]): The optimizer.
        losses (Optional[Dict[str, float]]): Takes the objective under the component's name, and
            its terms and counters under that name with a suffix.
        RETURNS (Dict[str, float]): The losses.
        """
        losses = {} if losses is None else losses
        losses.setdefault(self.name, 0.0)
        examples = list(examples)
        validate_examples(examples, f"{type(self).__name__}.update")
        if not any(len(example.predicted) for example in examples):
            return losses
        set_dropout_rate(self.model, drop)
        vectors, backprop = self.model.begin_update([example.predicted for example in examples])
        terms, d_vectors = self.get_loss(examples, vectors)
        backprop(d_vectors)
        if sgd not in (None, False):
            self.finish_update(sgd)
        self.progress.count(len(examples))
        self.cfg["epoch"] = self.progress.epoch
        for name, value in terms.items():
            losses[name] = losses.get(name, 0.0) + value
        return losses

    def get_loss(
        self, examples: Sequence[Example], scores: list[Floats2d]
    ) -> tuple[dict[str, float], list[Floats2d]]:
        """Compute the objective of a batch and its gradient. The head's own gradients are kept in
        the head until `finish_update`.

        examples (Sequence[Example]): The examples.
        scores (List[Floats2d]): Their token vectors.
        RETURNS (Tuple[Dict[str, float], List[Floats2d]]): The terms of the loss, by the names that
            `update` logs them under, and the gradients of the token vectors.
        """
        tokens = self._tokens(scores, requires_grad=True)
        total, logged = self._objective_of(examples, tokens)
        total.backward()
        gradient = tokens.grad if tokens.grad is not None else zeros_like(tokens)
        lengths = self.model.ops.asarray1i([len(vectors) for vectors in scores])
        d_vectors = self.model.ops.unflatten(cast(Floats2d, torch2xp(gradient)), lengths)
        return logged, d_vectors

    def _objective_of(
        self, examples: Sequence[Example], tokens: Tensor
    ) -> tuple[Tensor, dict[str, float]]:
        """examples (Sequence[Example]): The examples of a batch.
        tokens (Tensor): Their token vectors, with gradient. Shape: (tokens, width).
        RETURNS (Tuple[Tensor, Dict[str, float]]): What to minimise, and what to log.
        """
        raise TypeError(f"{type(self).__name__} has no objective")

    def finish_update(self, sgd: Optimizer) -> None:
        """Apply the gradients, the head's at its own learning rate.

        sgd (Optimizer): The optimizer.
        """
        self.model.get_ref("tok2vec").finish_update(sgd)
        at_own_rate = partial(sgd, lr_scale=self.head_learn_rate_scale)
        self.model.get_ref("head").finish_update(cast(Optimizer, at_own_rate))

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """Save the component, with all that training needs to go on."""
        self.model.attrs["random_state"] = self._random_state()
        return cast(bytes, super().to_bytes(exclude=exclude))

    def to_disk(self, path: Any, *, exclude: Iterable[str] = ()) -> None:
        """Save the component, with all that training needs to go on."""
        self.model.attrs["random_state"] = self._random_state()
        super().to_disk(path, exclude=exclude)

    def from_bytes(self, bytes_data: bytes, *, exclude: Iterable[str] = ()) -> "RobustPipe":
        """Load the component; training can go on where it was."""
        with self._loading():
            super().from_bytes(bytes_data, exclude=exclude)
        return self

    def from_disk(self, path: Any, *, exclude: Iterable[str] = ()) -> "RobustPipe":
        """Load the component; training can go on where it was."""
        with self._loading():
            super().from_disk(path, exclude=exclude)
        return self

    @contextmanager
    def _loading(self) -> Iterator[None]:
        # Saved attributes of a model replace those that came from the config, which may be newer.
        attrs = self.model.attrs
        settings = {name: attrs[name] for name in _MODEL_SETTINGS if name in attrs}
        yield
        attrs.update(settings)
        self.progress = TrainingProgress(examples_per_epoch=self.cfg["examples_per_epoch"])
        self.progress.resume(self.cfg["epoch"])
        self._set_random_state(attrs.get("random_state") or {})

    def _random_state(self) -> dict[str, bytes]:
        """RETURNS (Dict[str, bytes]): The state of the component's random generators."""
        return {}

    def _set_random_state(self, state: dict[str, bytes]) -> None:
        """state (Dict[str, bytes]): From `_random_state`, or nothing."""

    def _tokens(self, vectors: list[Floats2d], *, requires_grad: bool = False) -> Tensor:
        flat = self.model.ops.flatten(vectors)
        return xp2torch(flat, requires_grad=requires_grad)
