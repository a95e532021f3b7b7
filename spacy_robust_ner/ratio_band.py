"""What it costs to expect too many or too few entities."""

import torch
from torch import Tensor

from .errors import Errors


class RatioBand:
    r"""A penalty on an expected ratio of entities that leaves a band around the known one (after
    Effland and Collins 2021):

    .. math::
        weight \cdot \max(0, \hat\rho - \rho - margin, \rho - \hat\rho - margin\_below)

    The band is there because the ratio of a batch is not that of the corpus. Sparse batches should
    have the more room, or they are asked for entities that they don't have.

    ratio (float): ρ, the known ratio of entities (or entity tokens) to tokens.
    margin (float): Distance above ρ that costs nothing.
    margin_below (Optional[float]): Distance below ρ that costs nothing; None for the same.
    weight (float): Weight of the penalty.
    """

    def __init__(
        self, *, ratio: float, margin: float, margin_below: float | None, weight: float
    ) -> None:
        self.ratio = ratio
        self.margin = margin
        self.margin_below = margin if margin_below is None else margin_below
        self.weight = weight
        for name, value in vars(self).items():
            if not value >= 0:
                raise ValueError(
                    Errors.R103.format(name=name, value=value, wanted="a number of at least 0")
                )

    def penalty(self, expected: Tensor) -> Tensor:
        """expected (Tensor): The expected ratio, a scalar with gradient.
        RETURNS (Tensor): A scalar.
        """
        above = expected - self.ratio - self.margin
        below = self.ratio - expected - self.margin_below
        return self.weight * torch.maximum(above, below).clamp(min=0)
