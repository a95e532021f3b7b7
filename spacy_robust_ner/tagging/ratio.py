"""The expected-ratio term: tell the model what share of the tokens to expect in entities."""

import torch
from torch import Tensor

from ..errors import Errors
from ..ratio_band import RatioBand
from .crf import CRF
from .padding import pad, token_docs
from .tag_set import TagSet
from .types import TokenBatch


class ExpectedEntityRatio(RatioBand):
    """A penalty on the distance between the expected and the known share of entity tokens
    (Effland and Collins 2021), to be added to any loss.

    The expected share is the mean probability of the batch's tokens to be in an entity: by the
    marginals of the CRF, or by softmax if there is none. The type NON is no entity.

    ratio (float): ρ: entity tokens a token.
    margin (float): Distance above ρ that costs nothing.
    margin_below (Optional[float]): Distance below ρ that costs nothing; None for the same.
    weight (float): Weight of the term.
    skip_complete (bool): Leave the tokens of complete documents out: their annotation says it all.
    """

    needs_crf = False

    def __init__(
        self,
        *,
        ratio: float = 0.15,
        margin: float = 0.05,
        margin_below: float | None = None,
        weight: float = 10.0,
        skip_complete: bool = False,
    ) -> None:
        super().__init__(ratio=ratio, margin=margin, margin_below=margin_below, weight=weight)
        if ratio > 1:
            raise ValueError(
                Errors.R103.format(name="ratio", value=ratio, wanted="a share between 0 and 1")
            )
        self.skip_complete = skip_complete

    def expected(
        self, batch: TokenBatch, *, tag_set: TagSet, crf: CRF | None = None
    ) -> Tensor | None:
        """RETURNS (Optional[Tensor]): The expected share of entity tokens, a scalar with
        gradient; None if there are no tokens to count.
        """
        counted = torch.ones_like(batch.tags, dtype=torch.bool)
        if self.skip_complete and batch.complete is not None:
            counted = ~batch.complete[token_docs(batch.lengths)]
        n_tokens = int(counted.sum())
        if not n_tokens:
            return None
        is_entity = torch.from_numpy(tag_set.is_entity).to(counted.device)
        counts = (counted.unsqueeze(1) & is_entity).to(batch.emissions.dtype)
        if crf is None:
            return (torch.softmax(batch.emissions, dim=1) * counts).sum() / n_tokens
        emissions, counts = pad(batch.emissions, batch.lengths), pad(counts, batch.lengths)
        return crf.expectation(emissions, batch.lengths, counts).sum() / n_tokens

    def __call__(self, batch: TokenBatch, *, tag_set: TagSet, crf: CRF | None = None) -> Tensor:
        expected = self.expected(batch, tag_set=tag_set, crf=crf)
        if expected is None:
            return batch.emissions.sum() * 0.0
        return self.penalty(expected).to(batch.emissions.dtype)
