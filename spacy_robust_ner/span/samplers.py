"""Which candidates become negatives. See `span.selection` for what samplers have in common."""

import math
from typing import Literal, get_args

import torch
from torch import Tensor

from ..errors import Errors
from ..types import SamplerContext, SamplerInput
from .hashing import hashed_uniform

RankingEnd = Literal["top", "bottom"]
SimilarityOf = Literal["hidden", "representation"]


class _Seeded:
    """A random generator of one's own, on the CPU so that a seed means the same everywhere."""

    def __init__(self, seed: int) -> None:
        self.generator = torch.Generator().manual_seed(seed)

    def random(self, like: Tensor) -> Tensor:
        """RETURNS (Tensor): Uniform numbers in (0, 1), one for each item. Shape: (items,)."""
        numbers = torch.rand(len(like), generator=self.generator, dtype=torch.float64)
        return numbers.clamp_(min=torch.finfo(torch.float64).tiny).to(like.device)

    def get_state(self) -> bytes:
        """RETURNS (bytes): The state of the generator."""
        return self.generator.get_state().numpy().tobytes()

    def set_state(self, state: bytes) -> None:
        """state (bytes): From `get_state`."""
        self.generator.set_state(torch.frombuffer(bytearray(state), dtype=torch.uint8))


def _check(name: str, value: float, holds: bool, wanted: str) -> None:
    if not holds:
        raise ValueError(Errors.R103.format(name=name, value=value, wanted=wanted))


def _share_of_tokens(rate: float, pool_sizes: Tensor, context: SamplerContext) -> Tensor:
    # A hair down, so that .07 of 100 tokens are 7 spans: the product is 7.000000000000001.
    wanted = torch.ceil(context.doc_lengths.double() * rate - 1e-9).long()
    return torch.minimum(wanted, pool_sizes)


class AllSampler:
    """Every candidate: the naive baseline."""

    needs_scores = False
    needs_vectors = False
    needs_similarity = False
    with_dropout = False
    is_uniform = True
    per_document = True

    def keys(self, spans: SamplerInput, context: SamplerContext) -> Tensor:
        return torch.zeros_like(spans.rows, dtype=torch.float64)

    def quota(self, pool_sizes: Tensor, context: SamplerContext) -> Tensor | None:
        return None

    def get_state(self) -> bytes:
        return b""

    def set_state(self, state: bytes) -> None:
        pass


class UniformSampler(_Seeded):
    """Li et al. (2021): ⌈rate · tokens⌉ candidates a document, without replacement.

    rate (float): Negatives a token.
    seed (int): Seed of the generator.
    """

    needs_scores = False
    needs_vectors = False
    needs_similarity = False
    with_dropout = False
    is_uniform = True
    per_document = True

    def __init__(self, *, rate: float = 0.35, seed: int = 0) -> None:
        super().__init__(seed)
        _check("rate", rate, rate >= 0, "a rate of at least 0")
        self.rate = rate

    def keys(self, spans: SamplerInput, context: SamplerContext) -> Tensor:
        return self.random(spans.rows)

    def quota(self, pool_sizes: Tensor, context: SamplerContext) -> Tensor | None:
        return _share_of_tokens(self.rate, pool_sizes, context)


class WeightedSampler(_Seeded):
    r"""Li et al. (2022), section 4.2: ⌈rate · tokens⌉ candidates a document, drawn one after the
    other without replacement with probability :math:`\propto \exp(r / T)`, where

    .. math:: r = u (1 + v)^\mu, \quad T = \sqrt{C - c},

    u is the entropy of the label distribution and v the lead of "no entity" over the other labels.
    Adding Gumbel noise to r / T and keeping the greatest is exactly that draw.

    rate (float): Negatives a token.
    mu (float): How strongly spans that look like entities are spared.
    outside_in_max (bool): Read the maximum in v as one over all labels, with "no entity". Then v
        is never positive, and the weights are hardly spread.
    prefer_hard (bool): Use the entropy, as in the paper. A span that the model takes for an entity
        and a span that it is sure about then weigh the same, and the draw goes to doubtful spans,
        among which are many unlabeled entities. Without it the weight is :math:`(1 + v)^{\mu / T}`,
        which spares whatever looks like an entity.
    seed (int): Seed of the generator.
    """

    needs_scores = True
    needs_vectors = False
    needs_similarity = False
    with_dropout = False
    is_uniform = False
    per_document = True

    def __init__(
        self,
        *,
        rate: float = 0.35,
        mu: float = 8.0,
        outside_in_max: bool = False,
        prefer_hard: bool = True,
        seed: int = 0,
    ) -> None:
        super().__init__(seed)
        _check("rate", rate, rate >= 0, "a rate of at least 0")
        _check("mu", mu, mu >= 1, "a number of at least 1")
        self.rate = rate
        self.mu = mu
        self.outside_in_max = outside_in_max
        self.prefer_hard = prefer_hard

    def log_weights(self, spans: SamplerInput, context: SamplerContext) -> Tensor:
        """RETURNS (Tensor): The logarithm of each span's weight. Shape: (spans,)."""
        if spans.log_probs is None:
            raise ValueError(Errors.R104.format(part="weighted sampler", value="log_probs"))
        log_probs = spans.log_probs.double()
        probs = log_probs.exp()
        uncertainty = torch.special.entr(probs).sum(1)
        outside = probs[:, context.o_index]
        if not self.outside_in_max:
            probs = probs.clone()
            probs[:, context.o_index] = 0.0
        lead = outside - probs.amax(1)
        temperature = math.sqrt(max(1, context.max_epochs - context.epoch))
        if not self.prefer_hard:
            # A span that is an entity for sure is drawn only when no other is left.
            return self.mu * (1.0 + lead).clamp(min=1e-12).log() / temperature
        return uncertainty * (1.0 + lead) ** self.mu / temperature

    def keys(self, spans: SamplerInput, context: SamplerContext) -> Tensor:
        return self.log_weights(spans, context) - torch.log(-torch.log(self.random(spans.rows)))

    def quota(self, pool_sizes: Tensor, context: SamplerContext) -> Tensor | None:
        return _share_of_tokens(self.rate, pool_sizes, context)


class TopSimilaritySampler(_Seeded):
    """Xu et al. (2023): of all candidates of the batch the ⌈share · candidates⌉ whose vectors have
    the greatest mean cosine with the batch's positives. The mean of cosines is one dot product
    with the mean of the positives' unit vectors, the anchor. Without a positive in the batch as
    many are drawn at random.

    share (float): Share of the candidates that become negatives.
    end (str): "top", or "bottom" for those with the least mean cosine instead, to compare.
    of (str): Which vectors: "hidden", the head's (the authors' code), or "representation", what
        its first layer sees (the paper).
    dropout (bool): Compare vectors as they are in training, with dropout (the authors' code). Its
        noise matters: without it, hardly anything but unlabeled entities is chosen where most
        entities are unlabeled.
    seed (int): Seed of the generator.
    """

    needs_scores = False
    is_uniform = False
    per_document = False

    def __init__(
        self,
        *,
        share: float = 0.05,
        end: RankingEnd = "top",
        of: SimilarityOf = "hidden",
        dropout: bool = True,
        seed: int = 0,
    ) -> None:
        super().__init__(seed)
        _check("share", share, 0 <= share <= 1, "a share between 0 and 1")
        for name, value, known in (
            ("end", end, get_args(RankingEnd)),
            ("of", of, get_args(SimilarityOf)),
        ):
            if value not in known:
                choices = ", ".join(known)
                raise ValueError(Errors.R105.format(name=name, value=value, choices=choices))
        self.share = share
        self.end = end
        self.with_dropout = dropout
        self.needs_vectors = of == "hidden"
        self.needs_similarity = of == "representation"

    def keys(self, spans: SamplerInput, context: SamplerContext) -> Tensor:
        if context.anchor is None:
            return self.random(spans.rows)
        similarity = self._similarity(spans, context.anchor)
        return similarity if self.end == "top" else -similarity

    def _similarity(self, spans: SamplerInput, anchor: Tensor) -> Tensor:
        part = "top-similarity sampler"
        if self.needs_similarity:
            if spans.similarity is None:
                raise ValueError(Errors.R104.format(part=part, value="similarity"))
            return spans.similarity
        if spans.vectors is None:
            raise ValueError(Errors.R104.format(part=part, value="vectors"))
        return torch.nn.functional.normalize(spans.vectors, dim=1) @ anchor

    def quota(self, pool_sizes: Tensor, context: SamplerContext) -> Tensor | None:
        return torch.ceil(pool_sizes.double() * self.share - 1e-9).long()


class FractionSampler:
    """Kang et al. (2022), section 4.2: each candidate with the same probability. Whether a span is
    chosen depends on its document, its place and the seed alone, not on the order of the batches.

    share (float): Probability of becoming a negative.
    each_epoch (bool): Draw anew in each epoch, rather than once.
    seed (int): Seed of the draw.
    """

    needs_scores = False
    needs_vectors = False
    needs_similarity = False
    with_dropout = False
    is_uniform = True
    per_document = True

    def __init__(self, *, share: float = 0.5, each_epoch: bool = False, seed: int = 0) -> None:
        _check("share", share, 0 <= share <= 1, "a share between 0 and 1")
        self.share = share
        self.each_epoch = each_epoch
        self.seed = seed

    def keys(self, spans: SamplerInput, context: SamplerContext) -> Tensor:
        if context.doc_keys is None:
            raise ValueError(Errors.R104.format(part="fraction sampler", value="doc_keys"))
        epoch = context.epoch if self.each_epoch else 0
        places = (spans.doc_index, spans.starts, spans.ends)
        numbers = hashed_uniform(
            self.seed, epoch, context.doc_keys, *(part.cpu().numpy() for part in places)
        )
        keys = torch.from_numpy(numbers).to(spans.rows.device)
        return keys.masked_fill(keys >= self.share, -torch.inf)

    def quota(self, pool_sizes: Tensor, context: SamplerContext) -> Tensor | None:
        return None

    def get_state(self) -> bytes:
        return b""

    def set_state(self, state: bytes) -> None:
        pass


def mean_unit_vector(vectors: Tensor) -> Tensor | None:
    """The anchor of the top-similarity sampler.

    vectors (Tensor): Vectors of the batch's positives. Shape: (positives, hidden).
    RETURNS (Optional[Tensor]): None without a positive. Shape: (hidden,).
    """
    return torch.nn.functional.normalize(vectors, dim=1).mean(0) if len(vectors) else None
