"""The positive-unlabeled risk over tokens. See `span.positive_unlabeled` for the risk itself."""

from collections.abc import Mapping

import torch
import torch.nn.functional as F
from torch import Tensor

from ..errors import Errors
from ..span.positive_unlabeled import BoundedNonNegativePURisk, Surrogate
from ..types import LossInput
from .crf import CRF
from .losses import check_choice
from .tag_set import MISSING_TAG, OUTSIDE_TAG, TagSet
from .targets import doubtful_tokens
from .types import TokenBatch


class TokenPURisk:
    r"""Bounded non-negative risk (Peng et al. 2019) with tokens as items and labels as classes.
    With p(tag) = p(label) p(tag | label), the risk is one of p(label): which tokens are hidden
    among the "O" is a matter of labels. The second factor, where entities begin and end, is
    learned from annotated tokens alone, by

    .. math:: \gamma \sum_k \pi_k \, E_{annotated}[-\log p(tag | label)]

    Every token of an incomplete document that has no label is unlabeled, whether "O", missing or
    removed. The tokens of complete documents have the cross entropy of their tags instead. Both
    parts count in proportion to their tokens.

    priors (Mapping[str, float]): The share of all tokens that are in entities of each label.
    gamma (float): Weight of the positives, which the small priors would drown.
    surrogate (str): "mae" or "ce".
    one_vs_rest (bool): One risk for each label, rather than a multi-class one.
    """

    needs_crf = False

    def __init__(
        self,
        *,
        priors: Mapping[str, float],
        gamma: float = 1.0,
        surrogate: Surrogate = "mae",
        one_vs_rest: bool = True,
    ) -> None:
        check_choice("surrogate", surrogate, ("mae", "ce"))
        if min(priors.values(), default=0.0) < 0 or sum(priors.values()) >= 1:
            raise ValueError(Errors.R156.format(priors=dict(priors)))
        self.priors = dict(priors)
        self.gamma = gamma
        self.surrogate: Surrogate = surrogate
        self.one_vs_rest = one_vs_rest

    def __call__(self, batch: TokenBatch, *, tag_set: TagSet, crf: CRF | None = None) -> Tensor:
        doubtful = doubtful_tokens(batch)
        vouched = ~doubtful & (batch.tags != MISSING_TAG)
        n_tokens = max(1, int((doubtful | vouched).sum()))
        risk = self._risk(batch.emissions[doubtful], batch.tags[doubtful], batch, tag_set)
        certain = F.cross_entropy(batch.emissions[vouched], batch.tags[vouched], reduction="sum")
        return (risk * int(doubtful.sum()) + certain) / n_tokens

    def _risk(self, emissions: Tensor, tags: Tensor, batch: TokenBatch, tag_set: TagSet) -> Tensor:
        if not len(tags):
            return emissions.sum()
        missing = [label for label in tag_set.labels if label not in self.priors]
        if missing:
            raise ValueError(Errors.R157.format(labels=", ".join(missing)))
        priors = [self.priors[label] for label in tag_set.labels]
        logits = class_logits(emissions, tag_set)
        is_entity = torch.from_numpy(tag_set.is_entity).to(tags.device)
        tag_types = torch.from_numpy(tag_set.tag_types).to(tags.device)
        # Missing tokens would index the last tag: they have no label either.
        tags = tags.clamp(min=OUTSIDE_TAG)
        labelled = is_entity[tags]
        targets = torch.where(labelled, tag_types[tags] + 1, 0)
        risk = BoundedNonNegativePURisk(
            priors=(0.0, *priors),
            gamma=self.gamma,
            surrogate=self.surrogate,
            one_vs_rest=self.one_vs_rest,
        )
        items = LossInput(logits=logits, targets=targets, n_docs=len(batch.lengths), o_index=0)
        own_tag = emissions.gather(1, tags.unsqueeze(1))
        own_label = logits.gather(1, targets.unsqueeze(1))
        given_label = (own_label - own_tag).squeeze(1)[labelled].sum() / max(1, int(labelled.sum()))
        return risk(items) + self.gamma * sum(priors) * given_label


def class_logits(emissions: Tensor, tag_set: TagSet) -> Tensor:
    """emissions (Tensor): Logits of the tags. Shape: (tokens, tags).
    tag_set (TagSet): The tags.
    RETURNS (Tensor): Logits of "no entity" and of each label, such that their softmax is the sum
        of the tags' probabilities. Shape: (tokens, 1 + labels).
    """
    n_labels = len(tag_set.labels)
    outside, typed = emissions[:, :1], emissions[:, 1:]
    by_type = typed.reshape(len(emissions), len(tag_set.types), -1).logsumexp(2)
    if tag_set.non_type is not None:
        outside = torch.logaddexp(outside, by_type[:, tag_set.non_type :])
    return torch.cat((outside, by_type[:, :n_labels]), dim=1)
