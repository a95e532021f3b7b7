"""Retrieval-augmented inference (Si et al. 2022, eqs. 11–16): mix the model's label distribution
with one from the similarity to the mean span vector of each label in the training data."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from ..errors import Errors
from .losses import _check_choice

MixingForm = Literal["probability", "log"]


@dataclass
class Centroids:
    """Sums and numbers of span vectors, a label. Sums are kept rather than means so that a pass
    over the training data in any number of batches gives the same centroids.

    sums (NDArray): Shape: (labels, hidden).
    counts (NDArray): Shape: (labels,). Not whole numbers once `decay` was used.
    """

    sums: NDArray[np.float64]
    counts: NDArray[np.float64]

    @classmethod
    def empty(cls, n_labels: int, vector_width: int) -> "Centroids":
        """RETURNS (Centroids): Centroids of a model that has seen nothing."""
        return cls(np.zeros((n_labels, vector_width)), np.zeros(n_labels))

    @classmethod
    def from_arrays(
        cls, arrays: dict[str, NDArray[np.float64]], *, n_labels: int, vector_width: int
    ) -> "Centroids":
        """arrays (Dict[str, NDArray]): From `to_arrays`.
        n_labels (int): Labels of the model.
        vector_width (int): Width of its span vectors.
        RETURNS (Centroids): The centroids, if they fit the model.
        """
        sums, counts = (np.array(arrays[name], dtype=np.float64) for name in ("sums", "counts"))
        if sums.shape != (n_labels, vector_width) or counts.shape != (n_labels,):
            wanted = f"{n_labels} labels with vectors of width {vector_width}"
            raise ValueError(
                Errors.R108.format(found=f"arrays of shape {sums.shape}", wanted=wanted)
            )
        return cls(sums, counts)

    def to_arrays(self) -> dict[str, NDArray[np.float64]]:
        """RETURNS (Dict[str, NDArray]): What has to be saved."""
        return {"sums": self.sums, "counts": self.counts}

    def update(self, vectors: Tensor, labels: Tensor) -> None:
        """Add spans.

        vectors (Tensor): Span vectors. Shape: (spans, hidden).
        labels (Tensor): Label columns. Shape: (spans,).
        """
        sums = torch.zeros(self.sums.shape, dtype=torch.float64)
        labels = labels.detach().cpu()
        sums.index_add_(0, labels, vectors.detach().double().cpu())
        self.sums += sums.numpy()
        self.counts += torch.bincount(labels, minlength=len(self.counts)).numpy()

    def decay(self, rate: float) -> None:
        """Let what was added so far count less, as the model's vectors change in training.

        rate (float): Factor of the old sums and counts.
        """
        self.sums *= rate
        self.counts *= rate

    @property
    def means(self) -> NDArray[np.float64]:
        """RETURNS (NDArray): The centroids; 0 for labels without spans. Shape: (labels, hidden)."""
        return self.sums / np.where(self.counts > 0, self.counts, 1.0)[:, None]

    def distribution(self, vectors: Tensor, *, o_index: int) -> Tensor:
        """The label distribution of retrieval: a softmax of cosines over the labels that have a
        centroid, of which the entry of "no entity" is then set to 0 without normalising again.

        vectors (Tensor): Span vectors. Shape: (spans, hidden).
        o_index (int): Column of "no entity".
        RETURNS (Tensor): Shape: (spans, labels).
        """
        seen = torch.from_numpy(self.counts > 0).to(vectors.device)
        if not bool(seen.any()):
            return vectors.new_zeros((len(vectors), len(self.counts)))
        means = torch.from_numpy(self.means).to(vectors.device, vectors.dtype)
        cosines = F.normalize(vectors, dim=1) @ F.normalize(means, dim=1).t()
        retrieved = F.softmax(cosines.masked_fill(~seen, -torch.inf), dim=1)
        retrieved[:, o_index] = 0.0
        return retrieved

    def mix(
        self,
        probs: Tensor,
        vectors: Tensor,
        *,
        alpha: float = 0.5,
        form: MixingForm = "probability",
        o_index: int = 0,
    ) -> Tensor:
        """Mix the model's distribution with that of retrieval.

        probs (Tensor): Label probabilities of the model. Shape: (spans, labels).
        vectors (Tensor): Span vectors. Shape: (spans, hidden).
        alpha (float): Share of retrieval.
        form (str): "probability": (1 − α) p + α q, which sums to less than 1. "log": the softmax
            of (1 − α) log p + α q, a milder shift.
        o_index (int): Column of "no entity".
        RETURNS (Tensor): The scores to decode; the model's own if nothing was fitted.
            Shape: (spans, labels).
        """
        _check_choice("form", form, ("probability", "log"))
        if not 0 <= alpha <= 1:
            raise ValueError(
                Errors.R103.format(name="alpha", value=alpha, wanted="between 0 and 1")
            )
        if alpha == 0 or not (self.counts > 0).any():
            return probs
        retrieved = self.distribution(vectors, o_index=o_index)
        if form == "probability":
            return (1.0 - alpha) * probs + alpha * retrieved
        log_probs = probs.clamp(min=torch.finfo(probs.dtype).tiny).log()
        return F.softmax((1.0 - alpha) * log_probs + alpha * retrieved, dim=1)
