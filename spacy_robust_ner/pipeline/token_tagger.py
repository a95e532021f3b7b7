"""`robust_token_tagger`: named entities as tags, learned from incomplete annotation."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any, cast

import numpy as np
import torch
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example, validate_get_examples
from spacy.vocab import Vocab
from thinc.api import Config, Model
from thinc.types import Floats2d
from torch import Tensor

from ..annotation import REJECTED_SPANS_KEY
from ..architectures.token_model import TokenModule
from ..architectures.torch_layer import torch_module
from ..decoding import ScoredSpans, join
from ..errors import Errors
from ..span.scanning import without_dropout
from ..tagging.non_spans import NonSpanSampler
from ..tagging.o_removal import RemovedTokens
from ..tagging.predict import predict_segments
from ..tagging.ratio import ExpectedEntityRatio
from ..tagging.tag_set import SchemeName, TagSet
from ..tagging.types import TokenLoss
from .label_counts import require_labels
from .label_statistics import EstimatedRatio, with_ratio
from .progress import TrainingProgress
from .robust_pipe import O_INDEX, RobustPipe, default_tok2vec_config
from .span_inference import without_space_edges
from .token_batch import TokenReader
from .token_counts import count_tokens
from .token_losses import CompletedPartialCRF, DictionaryCRF, TokenLossBlock, TokenPriorLoss
from .two_step import TwoStep

default_config = """
[model]
@architectures = "spacy_robust_ner.TokenModel.v1"
crf = true

[model.head]
@architectures = "spacy_robust_ner.SoftmaxHead.v1"

[loss]
@misc = "spacy_robust_ner.PartialCRF.v1"

[ratio]
@misc = "spacy_robust_ner.ExpectedEntityRatio.v1"
margin_below = 0.08

[scorer]
@scorers = "spacy_robust_ner.entity_scorer.v1"
"""
DEFAULTS = Config().from_str(default_config + default_tok2vec_config)


@Language.factory(
    "robust_token_tagger",
    assigns=["doc.ents", "doc.spans", "span._.entity_score"],
    default_config={
        "model": DEFAULTS["model"],
        "scheme": "bioes",
        "loss": DEFAULTS["loss"],
        "ratio": DEFAULTS["ratio"],
        "two_step": None,
        "non_sampling": None,
        "annotate_ents": True,
        "overwrite_ents": False,
        "spans_key": None,
        "threshold": None,
        "rejected_spans_key": REJECTED_SPANS_KEY,
        "default_complete": False,
        "withdraw_doubtful": True,
        "withdraw_fragments": True,
        "outside_by_writing": True,
        "head_learn_rate_scale": 1.0,
        "scorer": DEFAULTS["scorer"],
    },
    default_score_weights={"ents_f": 1.0, "ents_p": 0.0, "ents_r": 0.0, "ents_per_type": None},
)
def make_robust_token_tagger(
    nlp: Language,
    name: str,
    model: Model[list[Doc], list[Floats2d]],
    scheme: SchemeName,
    loss: TokenLoss | TokenPriorLoss,
    ratio: ExpectedEntityRatio | EstimatedRatio[ExpectedEntityRatio] | None,
    two_step: TwoStep | None,
    non_sampling: NonSpanSampler | None,
    annotate_ents: bool,
    overwrite_ents: bool,
    spans_key: str | None,
    threshold: float | None,
    rejected_spans_key: str,
    default_complete: bool,
    withdraw_doubtful: bool,
    withdraw_fragments: bool,
    outside_by_writing: bool,
    head_learn_rate_scale: float,
    scorer: Callable[..., dict[str, Any]] | None,
) -> "RobustTokenTagger":
    """Create a RobustTokenTagger component. The arguments are those of the class."""
    return RobustTokenTagger(
        nlp.vocab,
        model,
        name,
        scheme=scheme,
        loss=loss,
        ratio=ratio,
        two_step=two_step,
        non_sampling=non_sampling,
        annotate_ents=annotate_ents,
        overwrite_ents=overwrite_ents,
        spans_key=spans_key,
        threshold=threshold,
        rejected_spans_key=rejected_spans_key,
        default_complete=default_complete,
        withdraw_doubtful=withdraw_doubtful,
        withdraw_fragments=withdraw_fragments,
        outside_by_writing=outside_by_writing,
        head_learn_rate_scale=head_learn_rate_scale,
        scorer=scorer,
    )


class RobustTokenTagger(RobustPipe):
    """Tags each token, with a loss that knows that an "O" may be wrong.

    vocab (Vocab): The shared vocabulary.
    model (Model): Built by `spacy_robust_ner.TokenModel.v1`.
    name (str): The component's name.
    scheme (str): "bio" or "bioes".
    loss (TokenLossBlock): What the tags of a document cost. The loss says what an "O" of an
        incomplete document counts as.
    ratio (Optional[Union[ExpectedEntityRatio, EstimatedRatio]]): Holds the expected share of
        entity tokens near a known or estimated ratio.
    two_step (Optional[TwoStep]): Explore before training, and remove suspicious "O" tokens.
    non_sampling (Optional[NonSpanSampler]): Give some spans of "O" tokens an extra type.
    threshold (Optional[float]): The least probability of an entity; None for all of the best tag
        sequence.
    **common: The settings of RobustPipe.
    """

    def __init__(
        self,
        vocab: Vocab,
        model: Model[list[Doc], list[Floats2d]],
        name: str = "robust_token_tagger",
        *,
        scheme: SchemeName = "bioes",
        loss: TokenLossBlock,
        ratio: ExpectedEntityRatio | EstimatedRatio[ExpectedEntityRatio] | None = None,
        two_step: TwoStep | None = None,
        non_sampling: NonSpanSampler | None = None,
        threshold: float | None = None,
        **common: Any,
    ) -> None:
        super().__init__(vocab, model, name, **common)
        self.scheme: SchemeName = scheme
        self.loss = loss
        self.ratio = ratio
        self.two_step = two_step
        self.non_sampling = non_sampling
        self.threshold = threshold
        self._removed: RemovedTokens | None = None
        self._check_settings()

    @property
    def head(self) -> TokenModule:
        """RETURNS (TokenModule): The torch module that scores tags."""
        return cast(TokenModule, torch_module(self.model.get_ref("head")))

    @property
    def tag_set(self) -> TagSet:
        """RETURNS (TagSet): The tags that the model was built for."""
        head = self.head
        return TagSet(self.labels, scheme=head.scheme, with_non_entity=head.with_non_entity)

    @property
    def removed(self) -> RemovedTokens | None:
        """RETURNS (Optional[RemovedTokens]): "O" tokens of the training data that the loss
        disregards. They are saved with the component, for training to go on.
        """
        return self._removed

    @removed.setter
    def removed(self, tokens: RemovedTokens | None) -> None:
        self._removed = tokens
        self.model.attrs["removed"] = None if tokens is None else tokens.to_arrays()

    @property
    def reader(self) -> TokenReader:
        """RETURNS (TokenReader): Reads what training examples say."""
        return TokenReader(
            tag_set=self.tag_set,
            loss=self.loss,
            removed=self.removed,
            non_sampling=self.non_sampling,
            epoch=self.progress.epoch,
            read_targets=self.read_targets,
        )

    def predict(self, docs: Iterable[Doc]) -> list[ScoredSpans]:
        """Find entities without writing them.

        docs (Iterable[Doc]): The documents.
        RETURNS (List[ScoredSpans]): The entities of each document, with their probabilities.
        """
        docs = list(docs)
        if not self.labels or not any(len(doc) for doc in docs):
            return [join([]) for _ in docs]
        decisions, lengths = self.decisions(docs)
        segments, probs = predict_segments(
            decisions, lengths, tag_set=self.tag_set, crf=self.head.crf
        )
        found = ScoredSpans(segments.starts, segments.ends, segments.types + O_INDEX + 1, probs)
        sure = probs >= (0.0 if self.threshold is None else self.threshold)
        found, owners = found.take(np.flatnonzero(sure)), segments.docs[sure]
        borders = np.searchsorted(owners, np.arange(len(docs) + 1))
        return [
            without_space_edges(doc, found.take(slice(borders[i], borders[i + 1])))
            for i, doc in enumerate(docs)
        ]

    @torch.no_grad()
    def decisions(self, docs: Sequence[Doc]) -> tuple[Tensor, Tensor]:
        """Decision values of all tags, without dropout.

        docs (Sequence[Doc]): Documents that the components before this one have processed.
        RETURNS (Tuple[Tensor, Tensor]): The values of all tokens, the documents one after another,
            and the lengths of the documents. Shapes: (tokens, tags), (documents,).
        """
        tokens = self._tokens(self.model.predict(list(docs)))
        head = self.head
        with without_dropout(head):
            values = head(tokens)
        return values, torch.tensor([len(doc) for doc in docs], device=values.device)

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Language | None = None,
        labels: Sequence[str] | None = None,
    ) -> None:
        """Set labels and sizes, and make the weights. Methods in two steps also take their first
        step here.

        get_examples (Callable[[], Iterable[Example]]): The training examples.
        nlp (Optional[Language]): The pipeline.
        labels (Optional[Sequence[str]]): The labels; read from the examples if not given.
        """
        validate_get_examples(get_examples, "RobustTokenTagger.initialize")
        self._check_score_weights(nlp)
        counts = count_tokens(get_examples())
        for label in labels if labels is not None else sorted(counts.labels):
            self._append_label(label)
        require_labels(self.labels, name=self.name, examples=counts.examples)
        self.cfg.update(
            label_shares=counts.shares,
            epoch=0,
            examples_per_epoch=counts.examples,
        )
        self.progress = TrainingProgress(examples_per_epoch=counts.examples)
        estimates = isinstance(self.ratio, EstimatedRatio) or (
            self.two_step is not None and self.two_step.share is None
        )
        self._study_labels(get_examples, unit="tokens" if estimates else None)
        if isinstance(self.loss, DictionaryCRF):
            self.loss.warn_without_phrases(get_examples(), name=self.name)
        sample = list(islice((eg.predicted for eg in get_examples() if len(eg.predicted)), 10))
        if not sample:
            raise ValueError(Errors.R122.format(name=self.name, count=counts.examples))
        self.model.get_ref("head").attrs["build_options"] = {
            "scheme": self.scheme,
            "with_non_entity": self.non_sampling is not None,
        }
        self.model.set_dim("nO", len(self.labels), force=True)
        self.model.initialize(X=sample)
        self.removed = None
        self._first_step(get_examples, nlp)

    @contextmanager
    def on_plain_data(self, *, loss: TokenLossBlock | None = None) -> Iterator[None]:
        """For trials: within the context nothing is removed or sampled.

        loss (Optional[TokenLossBlock]): Another loss than the component's own.
        """
        kept = self.loss, self.removed, self.non_sampling, self.progress
        self.loss = self.loss if loss is None else loss
        self.removed, self.non_sampling = None, None
        self.progress = TrainingProgress()
        try:
            yield
        finally:
            self.loss, self.removed, self.non_sampling, self.progress = kept
            self.cfg["epoch"] = self.progress.epoch

    def _first_step(
        self, get_examples: Callable[[], Iterable[Example]], nlp: Language | None
    ) -> None:
        completes = isinstance(self.loss, CompletedPartialCRF)
        if not completes and self.two_step is None:
            return
        if nlp is None:
            raise ValueError(Errors.R182.format(name=self.name))
        examples = [example for example in get_examples() if len(example.predicted)]
        if isinstance(self.loss, CompletedPartialCRF):
            self.loss.completion.prepare(nlp, self, examples)
        if self.two_step is not None:
            self.removed = self.two_step.select(nlp, self, examples)

    def _objective_of(
        self, examples: Sequence[Example], tokens: Tensor
    ) -> tuple[Tensor, dict[str, float]]:
        head, tag_set = self.head, self.tag_set
        batch = self.reader.read(examples, head(tokens))
        loss = self.loss
        if isinstance(loss, TokenPriorLoss):
            loss = loss.build(self.cfg["label_shares"])
        total = loss(batch, tag_set=tag_set, crf=head.crf)
        logged = {}
        ratio = self._ratio_term()
        if ratio is not None:
            term = ratio(batch, tag_set=tag_set, crf=head.crf)
            logged[f"{self.name}_loss"] = float(total.detach())
            logged[f"{self.name}_ratio"] = float(term.detach())
            total = total + term
        logged[self.name] = float(total.detach())
        if batch.removed is not None:
            logged[f"{self.name}_removed"] = float(batch.removed.sum())
        return total, logged

    def _ratio_term(self) -> ExpectedEntityRatio | None:
        return with_ratio(self.ratio, self.cfg["ratio"])

    def _set_random_state(self, state: dict[str, bytes]) -> None:
        arrays = self.model.attrs["removed"]
        self._removed = None if arrays is None else RemovedTokens.from_arrays(arrays)

    def _check_settings(self) -> None:
        TagSet((), scheme=self.scheme)
        if self.threshold is not None and not 0 <= self.threshold <= 1:
            raise ValueError(
                Errors.R103.format(
                    name="threshold", value=self.threshold, wanted="null, or between 0 and 1"
                )
            )
        has_crf = self.model.attrs["crf"]
        if self.loss.needs_crf != has_crf:
            error = Errors.R181 if has_crf else Errors.R180
            raise ValueError(error.format(loss=type(self.loss).__name__))
