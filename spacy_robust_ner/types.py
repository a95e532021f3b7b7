"""The boundaries between the parts: what each hands to the next, and what a pluggable part must do.

Spans are end exclusive everywhere. A batch of documents is one token matrix, the documents one
after another; "token row" is a row of it, "row" is the number of a candidate span of the batch.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from torch import Tensor

Projections = tuple[Tensor, ...]


@dataclass(frozen=True)
class SpanOutput:
    """What a head says about some spans.

    logits (Tensor): Unnormalised label scores. Shape: (spans, labels).
    vectors (Tensor): Hidden span representations, before dropout. Shape: (spans, hidden).
    """

    logits: Tensor
    vectors: Tensor


@runtime_checkable
class SpanHead(Protocol):
    """Scores spans from token vectors in two steps: once a batch, then for any subset of spans."""

    n_labels: int
    vector_width: int

    def prepare(self, tokens: Tensor) -> Projections:
        """tokens (Tensor): Token vectors. Shape: (tokens, width).
        RETURNS (Projections): What every span of the batch shares.
        """
        ...

    def score(self, projections: Projections, starts: Tensor, ends: Tensor) -> SpanOutput:
        """projections (Projections): From `prepare`.
        starts (Tensor): First token row of each span. Shape: (spans,).
        ends (Tensor): One after its last token row. Shape: (spans,).
        RETURNS (SpanOutput): Logits and vectors of these spans.
        """
        ...

    def represent(self, tokens: Tensor, starts: Tensor, ends: Tensor) -> Tensor:
        """What the first layer sees of a few spans. For many of them it would be a huge table,
        which `score` never makes.

        tokens (Tensor): Token vectors. Shape: (tokens, width).
        starts (Tensor): First token row of each span. Shape: (spans,).
        ends (Tensor): One after its last token row. Shape: (spans,).
        RETURNS (Tensor): Shape: (spans, representation).
        """
        ...

    def similarity(self, tokens: Tensor, anchor: Tensor, starts: Tensor, ends: Tensor) -> Tensor:
        """Compare the representations of many spans with a vector, without making them.

        anchor (Tensor): Shape: (representation,).
        RETURNS (Tensor): The dot product of anchor and normalised representation. Shape: (spans,).
        """
        ...


@dataclass(frozen=True)
class SamplerInput:
    """Some candidate spans of a batch, in row order, as a sampler sees them.

    rows (Tensor): Candidate rows. Shape: (spans,), as all that follow.
    doc_index (Tensor): The document of each span.
    starts (Tensor): First token, counted from the start of the document.
    ends (Tensor): One after the last token, counted likewise.
    is_positive (Tensor): Labelled spans; never negatives.
    is_unknown (Tensor): Spans that touch a missing token; never negatives.
    is_true_negative (Tensor): Spans that somebody vouches to be no entity.
    log_probs (Optional[Tensor]): Label log-probabilities, detached. Shape: (spans, labels).
    vectors (Optional[Tensor]): Span vectors, detached. Shape: (spans, hidden).
    similarity (Optional[Tensor]): Mean cosine with the batch's positives.
    """

    rows: Tensor
    doc_index: Tensor
    starts: Tensor
    ends: Tensor
    is_positive: Tensor
    is_unknown: Tensor
    is_true_negative: Tensor
    log_probs: Tensor | None = None
    vectors: Tensor | None = None
    similarity: Tensor | None = None


@dataclass(frozen=True)
class SamplerContext:
    """What a sampler may know about the whole batch and the course of training.

    doc_lengths (Tensor): Tokens a document. Shape: (documents,).
    doc_candidates (Tensor): Candidate spans a document. Shape: (documents,).
    doc_keys (Optional[Sequence[int]]): A number for each document that stays the same whenever
        the document comes back, such as a hash of its words.
    epoch (int): Completed epochs.
    max_epochs (int): Epochs in all.
    o_index (int): Column of the "no entity" label.
    anchor (Optional[Tensor]): Mean unit vector of the batch's positives. Shape: (hidden,).
    """

    doc_lengths: Tensor
    doc_candidates: Tensor
    doc_keys: Sequence[int] | None = None
    epoch: int = 0
    max_epochs: int = 1
    o_index: int = 0
    anchor: Tensor | None = None


@dataclass(frozen=True)
class NegativeSample:
    """The negatives of a batch.

    rows (Tensor): Chosen candidate rows, ascending. Shape: (negatives,).
    is_true_negative (Tensor): Which of them are vouched for. Shape: (negatives,).
    weights (Tensor): How many candidates each stands for: 1 / probability of being chosen where
        the sampler draws uniformly, else 1. Shape: (negatives,).
    """

    rows: Tensor
    is_true_negative: Tensor
    weights: Tensor


@runtime_checkable
class NegativeSampler(Protocol):
    """Ranks candidates; the selection itself, and the guard that labelled and unknown spans stay
    out of it, are common to all samplers (`span.selection`).

    needs_scores (bool): Whether `keys` reads log-probabilities.
    needs_vectors (bool): Whether `keys` reads span vectors and the anchor.
    needs_similarity (bool): Whether `keys` reads the similarity of span representations.
    with_dropout (bool): Whether scores and vectors shall be those of training, with dropout.
    is_uniform (bool): Whether the negatives are a fair sample of the candidates.
    per_document (bool): Whether `quota` counts for each document, or for the batch as a whole.
    """

    needs_scores: bool
    needs_vectors: bool
    needs_similarity: bool
    with_dropout: bool
    is_uniform: bool
    per_document: bool

    def keys(self, spans: SamplerInput, context: SamplerContext) -> Tensor:
        """RETURNS (Tensor): A number a span; the greatest are chosen first, -inf never.
        Shape: (spans,).
        """
        ...

    def quota(self, pool_sizes: Tensor, context: SamplerContext) -> Tensor | None:
        """pool_sizes (Tensor): Candidates to choose from, a document or (one number) the batch.
        RETURNS (Optional[Tensor]): How many to choose, in the same shape; monotone in the pool
            sizes. None for all with a finite key.
        """
        ...

    def get_state(self) -> bytes:
        """RETURNS (bytes): The state of the random generator, for resuming."""
        ...

    def set_state(self, state: bytes) -> None:
        """state (bytes): From `get_state`."""
        ...


@dataclass(frozen=True)
class LossInput:
    """The chosen spans of a batch, positives and negatives together.

    logits (Tensor): Label scores with gradient. Shape: (spans, labels).
    targets (Tensor): Label columns; `o_index` for negatives. Shape: (spans,).
    n_docs (int): Documents in the batch.
    o_index (int): Column of the "no entity" label.
    epoch (int): Completed epochs.
    weights (Optional[Tensor]): How many spans each stands for; 1 if not given. Shape: (spans,).
    confidence (Optional[Tensor]): Probability of being an entity, from a first stage.
        Shape: (spans,).
    """

    logits: Tensor
    targets: Tensor
    n_docs: int
    o_index: int = 0
    epoch: int = 0
    weights: Tensor | None = None
    confidence: Tensor | None = None


@runtime_checkable
class SpanLoss(Protocol):
    """A pure function of the chosen spans.

    needs_uniform_negatives (bool): Whether the negatives must be a fair sample of the candidates
        (with `weights` that say what each stands for).
    needs_confidence (bool): Whether `confidence` must be given.
    """

    needs_uniform_negatives: bool
    needs_confidence: bool

    def __call__(self, batch: LossInput) -> Tensor:
        """RETURNS (Tensor): The objective, a scalar with gradient."""
        ...


@runtime_checkable
class SampleObserver(Protocol):
    """Sees which spans were chosen as negatives, for instance to count missampling."""

    def __call__(
        self, doc_keys: Sequence[int], doc_index: Tensor, starts: Tensor, ends: Tensor
    ) -> None:
        """doc_keys (Sequence[int]): Stable numbers of the batch's documents, as samplers get them.
        doc_index (Tensor): The document of each negative. Shape: (negatives,).
        starts (Tensor): First tokens, counted in the document. Shape: (negatives,).
        ends (Tensor): One after the last tokens. Shape: (negatives,).
        """
        ...
