"""What the parts of the token tagger hand to each other, and what a pluggable part must do."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from torch import Tensor

from .tag_set import TagSet

if TYPE_CHECKING:
    from .crf import CRF


@runtime_checkable
class TokenHead(Protocol):
    """Scores the tags of tokens."""

    n_tags: int

    def __call__(self, tokens: Tensor) -> Tensor:
        """tokens (Tensor): Token vectors. Shape: (tokens, width).
        RETURNS (Tensor): Decision values. Shape: (tokens, tags).
        """
        ...


@dataclass(frozen=True)
class TokenBatch:
    """The tokens of a batch, the documents one after another, and what is known about them.

    emissions (Tensor): Decision values with gradient. Shape: (tokens, tags).
    lengths (Tensor): Tokens a document, 0 included. Shape: (documents,).
    tags (Tensor): Annotated tags, MISSING_TAG for missing. Shape: (tokens,).
    removed (Optional[Tensor]): Tokens whose "O" is disregarded. Shape: (tokens,).
    complete (Optional[Tensor]): Documents of which every "O" can be trusted; none if not given.
        Shape: (documents,).
    trusted (Optional[Tensor]): Tokens of incomplete documents whose "O" can be trusted none the
        less. Shape: (tokens,).
    allowed (Optional[Tensor]): Tags that each token may have, for the fuzzy CRF.
        Shape: (tokens, tags).
    log_weights (Optional[Tensor]): Logarithms of q(tag) of each token, for the weighted partial
        CRF. Shape: (tokens, tags).
    """

    emissions: Tensor
    lengths: Tensor
    tags: Tensor
    removed: Tensor | None = None
    complete: Tensor | None = None
    trusted: Tensor | None = None
    allowed: Tensor | None = None
    log_weights: Tensor | None = None


@runtime_checkable
class TokenLoss(Protocol):
    """A pure function of a batch of tokens.

    needs_crf (bool): Whether the loss is one of tag sequences.
    """

    needs_crf: bool

    def __call__(self, batch: TokenBatch, *, tag_set: TagSet, crf: "CRF | None" = None) -> Tensor:
        """RETURNS (Tensor): The objective, a scalar with gradient."""
        ...
