"""From decision values to entities with their probabilities."""

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .confidence import softmax_segment_log_probs
from .crf import CRF
from .padding import pad, unpad
from .tag_set import Segments, TagSet
from .viterbi import scheme_chain, viterbi


class Prediction(NamedTuple):
    """segments (Segments): The entities of a batch, in order.
    probs (NDArray[float64]): The probability of each. Shape: (segments,).
    """

    segments: Segments
    probs: NDArray[np.float64]


@torch.no_grad()
def predict_segments(
    emissions: Tensor, lengths: Tensor, *, tag_set: TagSet, crf: CRF | None = None
) -> Prediction:
    """Find the best tags that are in order, and read the entities off them.

    emissions (Tensor): Decision values of all tokens of the batch. Shape: (tokens, tags).
    lengths (Tensor): Tokens a document, 0 included. Shape: (documents,).
    tag_set (TagSet): The tags.
    crf (Optional[CRF]): The CRF, if the model has one: then probabilities are those of the whole
        segment. Otherwise they are the product of the tags' softmax.
    RETURNS (Prediction): The entities and their probabilities.
    """
    padded = pad(emissions, lengths)
    chain = scheme_chain(tag_set, emissions.device) if crf is None else crf.chain
    tags, _ = viterbi(padded, lengths, chain)
    segments = tag_set.decode(unpad(tags, lengths).cpu().numpy(), lengths.cpu().numpy())
    docs, starts, ends, types = (torch.from_numpy(part).to(lengths.device) for part in segments)
    where = {"starts": starts, "ends": ends, "types": types}
    if crf is None:
        log_probs = softmax_segment_log_probs(emissions, lengths, tag_set, docs=docs, **where)
    else:
        # Documents without entities need no probabilities.
        busy, rows = torch.unique(docs, return_inverse=True)
        longest = int(lengths[busy].max()) if len(busy) else 0
        log_probs = crf.segment_log_probs(padded[busy, :longest], lengths[busy], docs=rows, **where)
    probs: NDArray[np.float64] = log_probs.exp().cpu().double().numpy()
    # Rounding can carry a sure thing a hair beyond 1.
    return Prediction(segments, np.minimum(probs, 1.0))
