r"""Token heads: token vectors in, one decision value for each tag out.

The values are emissions of a CRF, or logits of a softmax.
"""

import math

import torch
from torch import Tensor, nn

from ..dropout import Dropout
from ..errors import Errors


def simplex_vertices(k: int) -> Tensor:
    r"""The vertices of a regular simplex around the origin (Zhang and Liu 2014):

    .. math::
        W_1 = (k-1)^{-1/2} 1, \quad
        W_j = -\frac{1 + \sqrt{k}}{(k-1)^{3/2}} 1 + \sqrt{\frac{k}{k-1}} e_{j-1}

    k (int): Number of vertices, at least 2.
    RETURNS (Tensor): Unit vectors with equal angles that sum to zero. Shape: (k, k - 1).
    """
    if k < 2:
        raise ValueError(Errors.R152.format(n_tags=k))
    ones = torch.ones(k - 1, dtype=torch.float64)
    first = ones / math.sqrt(k - 1)
    others = math.sqrt(k / (k - 1)) * torch.eye(k - 1, dtype=torch.float64)
    others = others - (1 + math.sqrt(k)) / (k - 1) ** 1.5 * ones
    return torch.cat((first.unsqueeze(0), others))


class _TokenLayers(nn.Module):
    """Dropout, an optional hidden layer, and the output layer."""

    def __init__(self, *, width: int, n_out: int, hidden_width: int | None, dropout: float) -> None:
        super().__init__()
        if not 0.0 <= dropout < 1.0:
            raise ValueError(Errors.R103.format(name="dropout", value=dropout, wanted="in [0, 1)"))
        if hidden_width is not None and hidden_width < 1:
            raise ValueError(
                Errors.R103.format(name="hidden_width", value=hidden_width, wanted="null or >= 1")
            )
        self.dropout = Dropout(dropout)
        self.hidden = None if hidden_width is None else nn.Linear(width, hidden_width)
        self.output = nn.Linear(hidden_width or width, n_out)
        # A zero output layer would give the encoder no gradient in the first step.
        for layer in (self.hidden, self.output):
            if layer is not None:
                nn.init.xavier_uniform_(layer.weight)
                nn.init.zeros_(layer.bias)

    def forward(self, tokens: Tensor) -> Tensor:
        tokens = self.dropout(tokens)
        if self.hidden is not None:
            tokens = self.dropout(torch.relu(self.hidden(tokens)))
        return self.output(tokens)


class SoftmaxHead(nn.Module):
    """One free value for each tag.

    width (int): Width of the token vectors.
    n_tags (int): Number of tags.
    hidden_width (Optional[int]): Width of a hidden layer with ReLU, None for no such layer.
    dropout (float): Dropout of the token vectors and of the hidden layer.
    """

    def __init__(
        self, *, width: int, n_tags: int, hidden_width: int | None = None, dropout: float = 0.1
    ) -> None:
        super().__init__()
        self.n_tags = n_tags
        self.layers = _TokenLayers(
            width=width, n_out=n_tags, hidden_width=hidden_width, dropout=dropout
        )

    def forward(self, tokens: Tensor) -> Tensor:
        """tokens (Tensor): Token vectors. Shape: (tokens, width).
        RETURNS (Tensor): Decision values. Shape: (tokens, tags).
        """
        return self.layers(tokens)


class AngleHead(nn.Module):
    """Values that sum to zero: the network's output has one dimension less than there are tags,
    and the value of a tag is its inner product with the tag's vertex of a simplex.

    width (int): Width of the token vectors.
    n_tags (int): Number of tags.
    hidden_width (Optional[int]): Width of a hidden layer with ReLU, None for no such layer.
    dropout (float): Dropout of the token vectors and of the hidden layer.
    """

    vertices: Tensor

    def __init__(
        self, *, width: int, n_tags: int, hidden_width: int | None = None, dropout: float = 0.1
    ) -> None:
        super().__init__()
        self.n_tags = n_tags
        vertices = simplex_vertices(n_tags)
        self.layers = _TokenLayers(
            width=width, n_out=n_tags - 1, hidden_width=hidden_width, dropout=dropout
        )
        self.register_buffer("vertices", vertices.to(torch.get_default_dtype()))

    def forward(self, tokens: Tensor) -> Tensor:
        """tokens (Tensor): Token vectors. Shape: (tokens, width).
        RETURNS (Tensor): Decision values. Shape: (tokens, tags).
        """
        return self.layers(tokens) @ self.vertices.t()
