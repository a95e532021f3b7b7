"""`robust_span_ner`: named entities as spans, learned from incomplete annotation."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example, validate_get_examples
from spacy.util import minibatch
from spacy.vocab import Vocab
from thinc.api import Config, Model
from thinc.types import Floats2d
from torch import Tensor, nn

from ..annotation import REJECTED_SPANS_KEY
from ..architectures.torch_layer import torch_module
from ..candidates import BatchAnnotation, Candidates, CandidateTable
from ..decoding import Overlap, ScoredSpans, join
from ..errors import Errors
from ..span.choosing import as_span_head
from ..span.contrastive import ContrastiveTerm
from ..span.objective import BatchTerms, Course, SpanObjective
from ..span.ratio import RatioTerm
from ..span.retrieval import Centroids
from ..span.segmentation_objective import SegmentationLikelihood, SegmentationObjective
from ..types import NegativeSampler, SampleObserver, SpanLoss, SpanOutput
from .confidence import ConfidenceSource
from .label_counts import count_labels, require_labels
from .label_statistics import EstimatedRatio, with_ratio
from .progress import TrainingProgress
from .random_state import random_state, set_random_state
from .registered import PriorLoss, Retrieval
from .robust_pipe import O_INDEX, OUTSIDE, RobustPipe, default_tok2vec_config
from .span_batch import annotate_examples, doc_key, labeled_vectors, process_before
from .span_combination import check_combination
from .span_inference import (
    find_spans,
    label_probabilities,
    score_candidates,
    score_segments,
    without_space_edges,
)
from .writing import write_candidates

default_config = """
[model]
@architectures = "spacy_robust_ner.SpanModel.v1"
max_width = 10

[model.head]
@architectures = "spacy_robust_ner.ConcatProductHead.v1"

[sampler]
@misc = "spacy_robust_ner.UniformSampler.v1"
rate = 0.0

[loss]
@misc = "spacy_robust_ner.SegmentationLikelihood.v1"

[ratio]
@misc = "spacy_robust_ner.RatioTerm.v1"
margin_below = 0.08

[scorer]
@scorers = "spacy_robust_ner.entity_scorer.v1"
"""
DEFAULTS = Config().from_str(default_config + default_tok2vec_config)


@Language.factory(
    "robust_span_ner",
    assigns=["doc.ents", "doc.spans", "span._.entity_score"],
    default_config={
        "model": DEFAULTS["model"],
        "sampler": DEFAULTS["sampler"],
        "loss": DEFAULTS["loss"],
        "contrastive": None,
        "ratio": DEFAULTS["ratio"],
        "retrieval": None,
        "confidence": None,
        "annotate_ents": True,
        "overwrite_ents": False,
        "spans_key": None,
        "spans_overlap": "nested",
        "threshold": None,
        "rejected_spans_key": REJECTED_SPANS_KEY,
        "default_complete": False,
        "withdraw_doubtful": True,
        "withdraw_fragments": True,
        "outside_by_writing": True,
        "use_all_true_negatives": True,
        "flat": True,
        "max_epochs": 10,
        "head_learn_rate_scale": 1.0,
        "scorer": DEFAULTS["scorer"],
    },
    default_score_weights={"ents_f": 1.0, "ents_p": 0.0, "ents_r": 0.0, "ents_per_type": None},
)
def make_robust_span_ner(
    nlp: Language,
    name: str,
    model: Model[list[Doc], list[Floats2d]],
    sampler: NegativeSampler,
    loss: SpanLoss | PriorLoss | SegmentationLikelihood,
    contrastive: ContrastiveTerm | None,
    ratio: RatioTerm | EstimatedRatio[RatioTerm] | None,
    retrieval: Retrieval | None,
    confidence: ConfidenceSource | None,
    annotate_ents: bool,
    overwrite_ents: bool,
    spans_key: str | None,
    spans_overlap: Overlap,
    threshold: float | None,
    rejected_spans_key: str,
    default_complete: bool,
    withdraw_doubtful: bool,
    withdraw_fragments: bool,
    outside_by_writing: bool,
    use_all_true_negatives: bool,
    flat: bool,
    max_epochs: int,
    head_learn_rate_scale: float,
    scorer: Callable[..., dict[str, Any]] | None,
) -> "RobustSpanNER":
    """Create a RobustSpanNER component. The arguments are those of the class."""
    return RobustSpanNER(
        nlp.vocab,
        model,
        name,
        sampler=sampler,
        loss=loss,
        contrastive=contrastive,
        ratio=ratio,
        retrieval=retrieval,
        confidence=confidence,
        annotate_ents=annotate_ents,
        overwrite_ents=overwrite_ents,
        spans_key=spans_key,
        spans_overlap=spans_overlap,
        threshold=threshold,
        rejected_spans_key=rejected_spans_key,
        default_complete=default_complete,
        withdraw_doubtful=withdraw_doubtful,
        withdraw_fragments=withdraw_fragments,
        outside_by_writing=outside_by_writing,
        use_all_true_negatives=use_all_true_negatives,
        flat=flat,
        max_epochs=max_epochs,
        head_learn_rate_scale=head_learn_rate_scale,
        scorer=scorer,
    )


class RobustSpanNER(RobustPipe):
    """Scores all spans up to a width, and learns from those that are labeled and from a careful
    choice of those that are not.

    vocab (Vocab): The shared vocabulary.
    model (Model): Built by `spacy_robust_ner.SpanModel.v1`.
    name (str): The component's name.
    sampler (NegativeSampler): Chooses the negatives among the unlabeled spans.
    loss (Union[SpanLoss, PriorLoss, SegmentationLikelihood]): Loss of the labeled spans and the
        negatives.
    contrastive (Optional[ContrastiveTerm]): Contrastive term on span vectors.
    ratio (Optional[Union[RatioTerm, EstimatedRatio]]): Holds the expected number of entities near
        a known or estimated ratio.
    retrieval (Optional[Retrieval]): Retrieval-augmented inference.
    confidence (Optional[ConfidenceSource]): First stage of the Conf-MPU loss.
    threshold (Optional[float]): The least probability of an entity. None: a span is an entity if
        its best label is more probable than none.
    use_all_true_negatives (bool): Learn from every unlabeled span of complete documents, every
        rejected span, and every other one that is certainly no entity, beside the sampled ones.
    flat (bool): Entities never overlap, so that a span which overlaps a labeled one is a true
        negative. None of the papers uses this; it costs nothing and teaches borders.
    max_epochs (int): Epochs over which schedules run.
    **common: The settings of RobustPipe.
    """

    def __init__(
        self,
        vocab: Vocab,
        model: Model[list[Doc], list[Floats2d]],
        name: str = "robust_span_ner",
        *,
        sampler: NegativeSampler,
        loss: SpanLoss | PriorLoss | SegmentationLikelihood,
        contrastive: ContrastiveTerm | None = None,
        ratio: RatioTerm | EstimatedRatio[RatioTerm] | None = None,
        retrieval: Retrieval | None = None,
        confidence: ConfidenceSource | None = None,
        threshold: float | None = None,
        use_all_true_negatives: bool = True,
        flat: bool = False,
        max_epochs: int = 10,
        **common: Any,
    ) -> None:
        super().__init__(vocab, model, name, **common)
        self.sampler = sampler
        self.loss = loss
        self.contrastive = contrastive
        self.ratio = ratio
        self.retrieval = retrieval
        self.confidence = confidence
        self.threshold = threshold
        self.use_all_true_negatives = use_all_true_negatives
        self.flat = flat
        self.max_epochs = max_epochs
        self.sample_observer: SampleObserver | None = None
        self._objective: SpanObjective | SegmentationObjective | None = None
        self._generators = {"ratio": torch.Generator()}
        if contrastive is not None:
            self._generators["contrastive"] = contrastive.generator
        check_combination(
            loss=loss,
            sampler=sampler,
            retrieval=retrieval,
            confidence=confidence,
            threshold=threshold,
            max_epochs=max_epochs,
        )

    @property
    def max_width(self) -> int | None:
        """RETURNS (Optional[int]): Tokens in the widest span that can be found."""
        width: int | None = self.model.attrs["max_width"]
        return width

    @property
    def head(self) -> nn.Module:
        """RETURNS (nn.Module): The torch module that scores spans."""
        return torch_module(self.model.get_ref("head"))

    @property
    def centroids(self) -> Centroids | None:
        """RETURNS (Optional[Centroids]): The fitted centroids of retrieval."""
        arrays = self.model.attrs["centroids"]
        if arrays is None:
            return None
        # Arrays that were loaded can't be changed in place.
        return Centroids(np.array(arrays["sums"]), np.array(arrays["counts"]))

    def predict(self, docs: Iterable[Doc]) -> list[ScoredSpans]:
        """Find entities without writing them.

        docs (Iterable[Doc]): The documents.
        RETURNS (List[ScoredSpans]): The entities of each document, whether they overlap or not.
        """
        docs = list(docs)
        table = self._table(docs)
        if table.n_tokens == 0 or not self.labels:
            return [join([]) for _ in docs]
        found = find_spans(
            self._score(docs, table), table, o_index=O_INDEX, threshold=self.threshold
        )
        return [without_space_edges(doc, spans) for doc, spans in zip(docs, found, strict=True)]

    def set_candidates(self, docs: Iterable[Doc], *, candidates_key: str = "candidates") -> None:
        """For debugging: write every candidate span with its best label and, in
        ``attrs["scores"]``, the probability of each label (columns as in ``attrs["labels"]``).

        docs (Iterable[Doc]): Documents that the components before this one have processed.
        candidates_key (str): The span group to write.
        """
        docs = list(docs)
        table = self._table(docs)
        scored = self._score(docs, table) if table.n_tokens else iter(())
        write_candidates(docs, scored, table, (OUTSIDE, *self.labels), key=candidates_key)

    def entity_probabilities(
        self, docs: Sequence[Doc], *, max_width: int | None
    ) -> list[NDArray[np.float32]]:
        """How probably each span is an entity, in the order of the candidates.

        docs (Sequence[Doc]): Documents that the components before this one have processed.
        max_width (Optional[int]): The widest span to score.
        RETURNS (List[NDArray]): For each document its probabilities. Shape: (candidates,).
        """
        table = CandidateTable([len(doc) for doc in docs], max_width=max_width)
        if table.n_tokens == 0:
            return [np.empty(0, dtype=np.float32) for _ in docs]
        rows = np.concatenate([1.0 - probs[:, O_INDEX] for _, probs in self._score(docs, table)])
        return np.split(rows, table.doc_rows[1:-1])

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Language | None = None,
        labels: Sequence[str] | None = None,
    ) -> None:
        """Set labels and sizes, and make the weights.

        get_examples (Callable[[], Iterable[Example]]): The training examples.
        nlp (Optional[Language]): The pipeline.
        labels (Optional[Sequence[str]]): The labels; read from the examples if not given.
        """
        validate_get_examples(get_examples, "RobustSpanNER.initialize")
        self._check_score_weights(nlp)
        counts = count_labels(get_examples(), name=self.name, max_width=self.max_width)
        for label in labels if labels is not None else sorted(counts.labels):
            self._append_label(label)
        require_labels(self.labels, name=self.name, examples=counts.examples)
        self.cfg["label_shares"] = counts.shares
        unit = self.ratio.unit if isinstance(self.ratio, EstimatedRatio) else None
        self._study_labels(get_examples, unit=unit)
        self.progress = TrainingProgress(examples_per_epoch=counts.examples)
        self.cfg.update(epoch=0, examples_per_epoch=counts.examples)
        self._objective = None
        sample = list(islice((eg.predicted for eg in get_examples() if len(eg.predicted)), 10))
        if not sample:
            raise ValueError(Errors.R122.format(name=self.name, count=counts.examples))
        self.model.set_dim("nO", len(self.labels) + 1, force=True)
        self.model.initialize(X=sample)
        self.model.attrs["centroids"] = None

    def fit_centroids(
        self, nlp: Language, examples: Iterable[Example], *, limit: int = 0, batch_size: int = 64
    ) -> Centroids:
        """Fit the centroids of retrieval with the present weights: the mean vector of the labeled
        spans of each label, and of sampled negatives.

        nlp (Language): The pipeline of this component.
        examples (Iterable[Example]): The training examples.
        limit (int): Read that many examples at most; 0 for all.
        batch_size (int): Documents a batch.
        RETURNS (Centroids): The centroids, which are saved with the component.
        """
        centroids = Centroids.empty(len(self.labels) + 1, as_span_head(self.head).vector_width)
        for batch in minibatch(islice(examples, limit or None), batch_size):
            docs = process_before(nlp, self.name, [example.predicted.copy() for example in batch])
            table = self._table(docs)
            if table.n_tokens:
                tokens = self._tokens(self.model.predict(docs))
                vectors, targets = labeled_vectors(
                    self.head,
                    tokens,
                    table,
                    self._annotation(batch, table),
                    chunk_size=self.model.attrs["chunk_size"],
                    o_index=O_INDEX,
                )
                centroids.update(vectors, targets)
        self.model.attrs["centroids"] = centroids.to_arrays()
        return centroids

    @property
    def objective(self) -> SpanObjective | SegmentationObjective:
        """RETURNS (Union[SpanObjective, SegmentationObjective]): What training minimises."""
        if self._objective is None:
            settings: dict[str, Any] = {
                "sampler": self.sampler,
                "contrastive": self.contrastive,
                "ratio": self._ratio_term(),
                "use_all_true_negatives": self.use_all_true_negatives,
                "chunk_size": self.model.attrs["chunk_size"],
            }
            if isinstance(self.loss, SegmentationLikelihood):
                self._objective = SegmentationObjective(**settings)
            else:
                loss: Any = self.loss
                if isinstance(loss, PriorLoss):
                    loss = loss.build((OUTSIDE, *self.labels), self.cfg["label_shares"])
                generator = self._generators["ratio"]
                self._objective = SpanObjective(loss=loss, generator=generator, **settings)
        return self._objective

    def _objective_of(
        self, examples: Sequence[Example], tokens: Tensor
    ) -> tuple[Tensor, dict[str, float]]:
        docs = [example.predicted for example in examples]
        table = self._table(docs)
        doc_keys = [doc_key(doc) for doc in docs]
        result = self.objective(
            self.head,
            tokens,
            table,
            self._annotation(examples, table),
            course=Course(self.progress.epoch, self.max_epochs),
            doc_keys=doc_keys,
            confidence=None if self.confidence is None else self.confidence.reader(docs, table),
            o_index=O_INDEX,
        )
        self._observe(result, table, doc_keys)
        return result.total, self._logged(result)

    def _random_state(self) -> dict[str, bytes]:
        return random_state(self.sampler, self._generators)

    def _set_random_state(self, state: dict[str, bytes]) -> None:
        set_random_state(self.sampler, self._generators, state)
        # It may hold the label shares of before.
        self._objective = None

    def _ratio_term(self) -> RatioTerm | None:
        return with_ratio(self.ratio, self.cfg["ratio"])

    def _table(self, docs: Sequence[Doc]) -> CandidateTable:
        return CandidateTable([len(doc) for doc in docs], max_width=self.max_width)

    def _score(
        self, docs: Sequence[Doc], table: CandidateTable
    ) -> Iterator[tuple[Candidates, NDArray[np.float32]]]:
        tokens = self._tokens(self.model.predict(list(docs)))
        chunk_size = self.model.attrs["chunk_size"]
        if isinstance(self.loss, SegmentationLikelihood):
            return score_segments(self.head, tokens, table, chunk_size=chunk_size, o_index=O_INDEX)
        return score_candidates(
            self.head,
            tokens,
            table,
            chunk_size=chunk_size,
            probabilities=self._probabilities,
        )

    def _probabilities(self, output: SpanOutput) -> Tensor:
        probs = label_probabilities(output)
        if self.retrieval is None:
            return probs
        centroids = self.centroids
        if centroids is None:
            raise ValueError(Errors.R116.format(name=self.name))
        return centroids.mix(
            probs,
            output.vectors,
            alpha=self.retrieval.alpha,
            form=self.retrieval.form,
            o_index=O_INDEX,
        )

    def _annotation(self, examples: Sequence[Example], table: CandidateTable) -> BatchAnnotation:
        return annotate_examples(
            examples,
            table,
            columns={label: i for i, label in enumerate(self.labels, O_INDEX + 1)},
            read_targets=self.read_targets,
            flat=self.flat,
        )

    def _observe(self, result: BatchTerms, table: CandidateTable, doc_keys: Sequence[int]) -> None:
        if self.sample_observer is not None:
            spans = table.spans_at(result.chosen.negatives.rows.cpu().numpy())
            offset = table.doc_starts[spans.doc_index]
            self.sample_observer(
                doc_keys,
                torch.from_numpy(spans.doc_index),
                torch.from_numpy(spans.starts - offset),
                torch.from_numpy(spans.ends - offset),
            )
        if self.retrieval is not None:
            centroids = self.centroids
            if centroids is None:
                centroids = Centroids.empty(
                    len(self.labels) + 1, as_span_head(self.head).vector_width
                )
            centroids.decay(self.retrieval.decay)
            centroids.update(result.vectors, result.chosen.targets)
            self.model.attrs["centroids"] = centroids.to_arrays()

    def _logged(self, result: BatchTerms) -> dict[str, float]:
        logged = {self.name: float(result.total.detach())}
        if len(result.terms) > 1:
            logged.update({f"{self.name}_{n}": float(t) for n, t in result.terms.items()})
        n_negatives = len(result.chosen.negatives.rows)
        logged[f"{self.name}_positives"] = float(result.chosen.n_labelled - n_negatives)
        logged[f"{self.name}_negatives"] = float(n_negatives)
        return logged
