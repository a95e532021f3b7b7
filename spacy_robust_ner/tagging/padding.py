"""Between a flat token matrix, the documents one after another, and a padded batch."""

import torch
from torch import Tensor


def length_mask(lengths: Tensor) -> Tensor:
    """lengths (Tensor): Tokens a document, 0 included. Shape: (documents,).
    RETURNS (Tensor): True for tokens, False for padding. Shape: (documents, longest).
    """
    longest = int(lengths.max()) if len(lengths) else 0
    return torch.arange(longest, device=lengths.device) < lengths.unsqueeze(1)


def pad(flat: Tensor, lengths: Tensor, *, value: float = 0) -> Tensor:
    """flat (Tensor): A row for each token of the batch. Shape: (tokens, ...).
    lengths (Tensor): Tokens a document. Shape: (documents,).
    value (float): What to fill the padding with.
    RETURNS (Tensor): The rows by document. Shape: (documents, longest, ...).
    """
    mask = length_mask(lengths)
    padded = flat.new_full((*mask.shape, *flat.shape[1:]), value)
    return padded.index_put((mask,), flat)


def unpad(padded: Tensor, lengths: Tensor) -> Tensor:
    """padded (Tensor): Shape: (documents, longest, ...).
    lengths (Tensor): Tokens a document. Shape: (documents,).
    RETURNS (Tensor): The rows without padding. Shape: (tokens, ...).
    """
    return padded[length_mask(lengths)]


def token_docs(lengths: Tensor) -> Tensor:
    """lengths (Tensor): Tokens a document. Shape: (documents,).
    RETURNS (Tensor): The document of each token. Shape: (tokens,).
    """
    return torch.repeat_interleave(lengths)
