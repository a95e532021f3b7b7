"""A batch of examples as the token core sees it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from spacy.training import Example
from torch import Tensor

from ..tagging.non_spans import NonSpanSampler
from ..tagging.o_removal import RemovedTokens
from ..tagging.tag_set import MISSING_TAG, OUTSIDE_TAG, TagSet
from ..tagging.targets import fuzzy_tags
from ..tagging.types import TokenBatch
from .span_batch import doc_key
from .targets import EntityTargets, TargetReader
from .token_losses import CompletedPartialCRF, DictionaryCRF, TokenLossBlock


@dataclass(frozen=True)
class TokenReader:
    """Reads what examples say about their tokens.

    tag_set (TagSet): The tags. Entities with labels that it doesn't have count as "O".
    loss (TokenLossBlock): The loss, which may want to know more than the annotation.
    removed (Optional[RemovedTokens]): Tokens whose "O" is disregarded.
    non_sampling (Optional[NonSpanSampler]): Draws the spans that get the type NON.
    epoch (int): The current epoch.
    read_targets (TargetReader): Reads the annotation of an example.
    """

    tag_set: TagSet
    loss: TokenLossBlock
    removed: RemovedTokens | None
    non_sampling: NonSpanSampler | None
    epoch: int
    read_targets: TargetReader

    def read(self, examples: Sequence[Example], emissions: Tensor) -> TokenBatch:
        """examples (Sequence[Example]): The examples.
        emissions (Tensor): Decision values of their tokens. Shape: (tokens, tags).
        RETURNS (TokenBatch): The batch.
        """
        targets = [self.read_targets(example) for example in examples]
        types = {label: i for i, label in enumerate(self.tag_set.labels)}
        tags = [_encode(target, types, self.tag_set) for target in targets]
        trusted = [trusted_outside(target) for target in targets]
        allowed, log_weights = None, None
        lengths = [len(rows) for rows in tags]
        flat_tags, removed = self._disregard(
            examples, _join(tags, np.int64), _join(trusted, bool), lengths
        )
        if isinstance(self.loss, DictionaryCRF):
            allowed = np.concatenate(
                [
                    self._allowed(self.loss, *rows)
                    for rows in zip(examples, targets, trusted, strict=True)
                ]
            )
        if isinstance(self.loss, CompletedPartialCRF):
            docs = [example.predicted for example in examples]
            log_weights = self.loss.completion.log_weights(docs, self.tag_set)
        device = emissions.device
        return TokenBatch(
            emissions=emissions,
            lengths=torch.tensor(lengths, device=device),
            tags=torch.from_numpy(flat_tags).to(device),
            removed=_tensor(removed, device),
            complete=torch.tensor([target.complete for target in targets], device=device),
            trusted=_tensor(_join(trusted, bool), device),
            allowed=_tensor(allowed, device),
            log_weights=_tensor(log_weights, device),
        )

    def outside_candidates(self, example: Example) -> NDArray[np.int64]:
        """RETURNS (NDArray[int64]): The tokens of an example whose "O" may hide an entity.
        Shape: (candidates,).
        """
        target = self.read_targets(example)
        types = {label: i for i, label in enumerate(self.tag_set.labels)}
        tags = _encode(target, types, self.tag_set)
        return np.flatnonzero(
            (tags == OUTSIDE_TAG) & ~trusted_outside(target) & (not target.complete)
        )

    def unlabeled_tokens(self, example: Example, ratio: float) -> float:
        """example (Example): An example.
        ratio (float): Entity tokens a token.
        RETURNS (float): How many of its "O" tokens that makes one expect in entities; below zero if
            it has more labels than that.
        """
        target = self.read_targets(example)
        if target.complete:
            return 0.0
        labeled = sum(end - start for start, end, _ in target.entities)
        return ratio * np.count_nonzero(~target.missing) - labeled

    def _disregard(
        self,
        examples: Sequence[Example],
        tags: NDArray[np.int64],
        trusted: NDArray[np.bool_],
        lengths: Sequence[int],
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_] | None]:
        """RETURNS (Tuple[NDArray[int64], Optional[NDArray[bool]]]): The tags with the NON spans
        of this epoch, and which tokens are removed. Shapes: (tokens,).
        """
        removed = None
        if self.removed is None and self.non_sampling is None:
            return tags, removed
        keys = [doc_key(example.predicted) for example in examples]
        if self.removed is not None:
            # The same sentence may come twice, with different annotation.
            removed = self.removed.mask(keys, lengths) & (tags == OUTSIDE_TAG) & ~trusted
        if self.non_sampling is not None:
            tags = self.non_sampling.apply(
                tags, removed, lengths, self.tag_set, keys=keys, epoch=self.epoch
            )
        return tags, removed

    def _allowed(
        self,
        loss: DictionaryCRF,
        example: Example,
        target: EntityTargets,
        trusted: NDArray[np.bool_],
    ) -> NDArray[np.bool_]:
        labels = {label: i for i, label in enumerate(self.tag_set.labels)}
        matches: dict[tuple[int, int], set[int]] = {}
        for start, end, label in loss.matches(example, target):
            if label in labels:
                matches.setdefault((start, end), set()).add(labels[label])
        allowed = fuzzy_tags(
            len(example.predicted),
            [(*bounds, sorted(types)) for bounds, types in matches.items()],
            [
                *loss.phrases(example),
                *((i, i + 1) for i in np.flatnonzero(target.missing).tolist()),
            ],
            self.tag_set,
        )
        certain = trusted & allowed[:, OUTSIDE_TAG]
        allowed[certain] = np.arange(len(self.tag_set)) == OUTSIDE_TAG
        return allowed


def trusted_outside(target: EntityTargets) -> NDArray[np.bool_]:
    """Somebody looked at a rejected span: where it has an "O", that is meant. Other tokens are "O"
    by their writing.

    target (EntityTargets): The annotation of an example.
    RETURNS (NDArray[bool]): Shape: (tokens,).
    """
    trusted = target.outside.copy()
    for start, end, _ in target.rejected:
        trusted[start:end] = True
    for start, end, _ in target.entities:
        trusted[start:end] = False
    return trusted & ~target.missing


def _encode(target: EntityTargets, types: Mapping[str, int], tag_set: TagSet) -> NDArray[np.int64]:
    known = [(start, end, types[label]) for start, end, label in target.entities if label in types]
    tags = tag_set.encode(known, len(target.missing))
    tags[target.missing] = MISSING_TAG
    return tags


def _join(parts: Sequence[NDArray], dtype: type) -> NDArray:
    return np.concatenate([np.empty(0, dtype=dtype), *parts])


def _tensor(array: NDArray | None, device: torch.device) -> Tensor | None:
    return None if array is None else torch.from_numpy(array).to(device)
