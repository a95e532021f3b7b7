"""What the annotation of tokens says about their tags, in the shape that each loss needs.

Tensors are flat: a row for each token of the batch, the documents one after another.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..errors import Errors
from .crf import CRF
from .padding import pad, token_docs, unpad
from .tag_set import MISSING_TAG, OUTSIDE_TAG, TagSet
from .types import TokenBatch


def doubtful_tokens(batch: TokenBatch) -> Tensor:
    """RETURNS (Tensor): Tokens whose "O", if it is one, may hide an entity. Shape: (tokens,)."""
    doubtful = torch.ones_like(batch.tags, dtype=torch.bool)
    if batch.complete is not None:
        doubtful = ~batch.complete[token_docs(batch.lengths)]
    return doubtful if batch.trusted is None else doubtful & ~batch.trusted


def known_tags(batch: TokenBatch, *, unknown_outside: bool, drop_removed: bool) -> Tensor:
    """The tags that can be relied on.

    batch (TokenBatch): The tokens.
    unknown_outside (bool): Whether an "O" of an incomplete document says nothing.
    drop_removed (bool): Whether nothing is known about removed tokens either.
    RETURNS (Tensor): A tag a token, MISSING_TAG for unknown. Shape: (tokens,).
    """
    tags = batch.tags
    if unknown_outside:
        doubtful = (tags == OUTSIDE_TAG) & doubtful_tokens(batch)
        tags = tags.masked_fill(doubtful, MISSING_TAG)
    if drop_removed and batch.removed is not None:
        tags = tags.masked_fill(batch.removed, MISSING_TAG)
    return tags


def allowed_tags(known: Tensor, lengths: Tensor, tag_set: TagSet) -> Tensor:
    """The tags that agree with what is known. The scheme's own constraints are left to the CRF,
    with one exception: in a scheme that doesn't mark the end of an entity, a token after an
    annotated entity is not free to go on with it, even if nothing else is known about the token.

    known (Tensor): A tag a token, MISSING_TAG for unknown. Shape: (tokens,).
    lengths (Tensor): Tokens a document. Shape: (documents,).
    tag_set (TagSet): The tags.
    RETURNS (Tensor): Shape: (tokens, tags).
    """
    columns = torch.arange(len(tag_set), device=known.device)
    unknown = known == MISSING_TAG
    allowed = (columns == known.unsqueeze(1)) | unknown.unsqueeze(1)
    if tag_set.marks_ends or len(known) < 2:
        return allowed
    docs = token_docs(lengths)
    types = torch.from_numpy(tag_set.tag_types).to(known.device)[known.clamp(min=OUTSIDE_TAG)]
    ends_here = (types[:-1] >= 0) & unknown[1:] & (docs[1:] == docs[:-1])
    rows = ends_here.nonzero().squeeze(1)
    going_on = torch.from_numpy(tag_set.role_tags[:, 1]).to(known.device)
    allowed[rows + 1, going_on[types[rows]]] = False
    return allowed


def fuzzy_tags(
    length: int,
    matches: Iterable[tuple[int, int, Sequence[int]]],
    phrases: Iterable[tuple[int, int]],
    tag_set: TagSet,
) -> NDArray[np.bool_]:
    """Allowed tags of a document from dictionaries (Shang et al. 2018). A match is an entity of
    one of its types; tokens of a phrase that no dictionary knows may have any tag; the others are
    "O".

    length (int): How many tokens there are.
    matches (Iterable[Tuple[int, int, Sequence[int]]]): Start, end and possible types of dictionary
        matches, which must not overlap.
    phrases (Iterable[Tuple[int, int]]): Start and end of phrases without a known type.
    tag_set (TagSet): The tags.
    RETURNS (NDArray[bool]): Shape: (tokens, tags).
    """
    allowed = np.zeros((length, len(tag_set)), dtype=bool)
    allowed[:, OUTSIDE_TAG] = True
    for start, end in phrases:
        allowed[start:end] = True
    last = (0, 0)
    for start, end, types in sorted(matches, key=lambda match: match[:2]):
        if start < last[1]:
            raise ValueError(Errors.R155.format(first=last, second=(start, end)))
        last = (start, end)
        allowed[start:end] = False
        for type_number in types:
            tags = tag_set.encode([(0, end - start, type_number)], end - start)
            allowed[np.arange(start, end), tags] = True
        if not tag_set.marks_ends and end < length:
            # The match ends here, so the phrase behind it can't go on with it.
            allowed[end, tag_set.role_tags[list(types), 1]] = False
    return allowed


@torch.no_grad()
def hard_completion(emissions: Tensor, lengths: Tensor, allowed: Tensor, crf: CRF) -> Tensor:
    """The weights q of Jie et al. (2019), "hard": all on the best sequence that agrees with what
    is known, found by a model that did not see the document in training.

    emissions (Tensor): Decision values of that model. Shape: (tokens, tags).
    lengths (Tensor): Tokens a document. Shape: (documents,).
    allowed (Tensor): From `allowed_tags`. Shape: (tokens, tags).
    crf (CRF): That model's CRF.
    RETURNS (Tensor): log q, 0 or -inf. Shape: (tokens, tags).
    """
    tags, _ = crf.viterbi(pad(emissions, lengths), lengths, allowed=pad(allowed, lengths))
    weights = torch.full(emissions.shape, -torch.inf, device=emissions.device)
    return weights.scatter(1, unpad(tags, lengths).unsqueeze(1), 0.0)


@torch.no_grad()
def soft_completion(emissions: Tensor, lengths: Tensor, allowed: Tensor, crf: CRF) -> Tensor:
    """The weights q of Jie et al. (2019), "soft": the marginals of each token, given what is
    known. The arguments are those of `hard_completion`.

    RETURNS (Tensor): log q, -inf for what is impossible. Shape: (tokens, tags).
    """
    known = pad(allowed, lengths)
    marginals = crf.marginals(pad(emissions, lengths), lengths, allowed=known)
    return unpad(marginals, lengths).log().float()
