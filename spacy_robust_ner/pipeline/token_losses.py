"""Losses of the token component that need more than tensors: spans of the training documents,
weights from cross-fitting, shares of the labels."""

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

from ..annotation import PHRASES_KEY, missing_tokens
from ..errors import Warnings
from ..tagging.losses import FuzzyCRF, Normalization, WeightedPartialCRF
from ..tagging.positive_unlabeled import TokenPURisk
from ..tagging.tag_set import TagSet
from ..tagging.types import TokenLoss
from .targets import EntityTargets

if TYPE_CHECKING:
    from .token_tagger import RobustTokenTagger


@runtime_checkable
class CompletionSource(Protocol):
    """Knows the weights q of the tags of training documents."""

    def prepare(
        self, nlp: Language, pipe: "RobustTokenTagger", examples: Sequence[Example]
    ) -> None:
        """Called at the end of a component's initialization.

        nlp (Language): The pipeline.
        pipe (RobustTokenTagger): The component.
        examples (Sequence[Example]): The training examples.
        """
        ...

    def log_weights(self, docs: Sequence[Doc], tag_set: TagSet) -> NDArray[np.float32]:
        """docs (Sequence[Doc]): The documents of a batch.
        tag_set (TagSet): The tags.
        RETURNS (NDArray): log q of the tags of all tokens. Shape: (tokens, tags).
        """
        ...


class CompletedPartialCRF(WeightedPartialCRF):
    """The weighted partial CRF with the source of its weights.

    completion (CompletionSource): Where the weights come from.
    unknown_outside (bool): Whether nothing is known about an "O" of an incomplete document.
    normalization (str): "document", "token" or "sum".
    """

    def __init__(
        self,
        completion: CompletionSource,
        *,
        unknown_outside: bool = True,
        normalization: Normalization = "document",
    ) -> None:
        super().__init__(unknown_outside=unknown_outside, normalization=normalization)
        self.completion = completion


class DictionaryCRF(FuzzyCRF):
    """The fuzzy CRF with the span groups that it reads. A span that may have several labels is in
    the group several times.

    matches_key (Optional[str]): Span group with the dictionary's matches; None, or a document
        without the group: the entities.
    phrases_key (Optional[str]): Span group with phrases that no dictionary knows.
    normalization (str): "document", "token" or "sum".
    """

    def __init__(
        self,
        *,
        matches_key: str | None = None,
        phrases_key: str | None = PHRASES_KEY,
        normalization: Normalization = "document",
    ) -> None:
        super().__init__(normalization=normalization)
        self.matches_key = matches_key
        self.phrases_key = phrases_key

    def warn_without_phrases(self, examples: Iterable[Example], *, name: str) -> None:
        """Without phrases the loss is that of a CRF on complete annotation, and nothing in its
        results tells.

        examples (Iterable[Example]): The training data.
        name (str): The component's name, for the warning.
        """
        if self.phrases_key is None:
            return
        if not any(_leaves_open(example.reference, self.phrases_key) for example in examples):
            warnings.warn(Warnings.W105.format(name=name, key=self.phrases_key), stacklevel=2)

    def matches(self, example: Example, target: EntityTargets) -> list[tuple[int, int, str]]:
        """RETURNS (List[Tuple[int, int, str]]): Matches in the predicted document's tokens."""
        spans = example.reference.spans
        if self.matches_key is None or self.matches_key not in spans:
            return target.entities
        return _aligned(example, self.matches_key)

    def phrases(self, example: Example) -> list[tuple[int, int]]:
        """RETURNS (List[Tuple[int, int]]): Phrases in the predicted document's tokens."""
        if self.phrases_key is None or self.phrases_key not in example.reference.spans:
            return []
        return [(start, end) for start, end, _ in _aligned(example, self.phrases_key)]


def _leaves_open(doc: Doc, phrases_key: str) -> bool:
    return phrases_key in doc.spans or any(missing_tokens(doc))


def _aligned(example: Example, key: str) -> list[tuple[int, int, str]]:
    spans = example.get_aligned_spans_y2x(example.reference.spans[key], allow_overlap=True)
    return [(span.start, span.end, span.label_) for span in spans]


@dataclass(frozen=True)
class TokenPriorLoss:
    """The positive-unlabeled risk, which needs the share of each label among the tokens.

    settings (Dict[str, Any]): Its other settings.
    priors (Dict[str, float]): Known shares by label; others are estimated.
    unlabeled_factor (float): How many entity tokens there are for each labeled one.
    """

    settings: dict[str, Any]
    priors: dict[str, float]
    unlabeled_factor: float
    needs_crf = False

    def __post_init__(self) -> None:
        TokenPURisk(priors=self.priors, **self.settings)

    def build(self, labeled_shares: dict[str, float]) -> TokenPURisk:
        """labeled_shares (Dict[str, float]): Share of each label among the training tokens, as far
            as they are labeled.
        RETURNS (TokenPURisk): The loss.
        """
        estimated = {
            label: self.unlabeled_factor * share for label, share in labeled_shares.items()
        }
        return TokenPURisk(priors={**estimated, **self.priors}, **self.settings)


TokenLossBlock = TokenLoss | TokenPriorLoss
