r"""Span heads: token vectors in, logits and span vectors out.

Every head is factored: the part of its first layer that is linear in one token is computed once a
token (`prepare`), and only the rest once a span (`score`). The concatenated span representation
of the papers is never built. Ends are exclusive.
"""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..dropout import Dropout
from ..errors import Errors
from ..types import Projections, SpanOutput
from .tanh import tanh_


def _check_dropout(**rates: float) -> None:
    for name, rate in rates.items():
        if not 0.0 <= rate < 1.0:
            raise ValueError(Errors.R103.format(name=name, value=rate, wanted="0 <= rate < 1"))


def _init_linear(*layers: nn.Linear) -> None:
    # A zero output layer would give the encoder no gradient in the first step.
    for layer in layers:
        nn.init.xavier_uniform_(layer.weight)
        if layer.bias is not None:
            nn.init.zeros_(layer.bias)


def _by_norm(dot: Tensor, squared_norm: Tensor) -> Tensor:
    return dot / squared_norm.clamp(min=1e-24).sqrt()


def _sum_of_parts(parts: Sequence[tuple[Tensor, Tensor, Tensor]]) -> Tensor:
    """parts (Sequence[Tuple[Tensor, Tensor, Tensor]]): Vectors, their part of the anchor, and the
        row of each span.
    RETURNS (Tensor): The similarity of representations that are these vectors side by side.
    """
    dot = torch.stack([(vectors @ anchor)[rows] for vectors, anchor, rows in parts]).sum(0)
    norm = torch.stack([vectors.square().sum(1)[rows] for vectors, _, rows in parts]).sum(0)
    return _by_norm(dot, norm)


class ConcatProductHead(nn.Module):
    r"""Li et al. (2021, 2022):

    .. math::
        r_{ij} = \tanh(W [h_i; h_j; h_i - h_j; h_i \odot h_j] + b), \quad o_{ij} = V r_{ij}

    with :math:`W s_{ij} = (W_1 + W_3) h_i + (W_2 - W_3) h_j + W_4 (h_i \odot h_j)`.

    width (int): Width of the token vectors.
    n_labels (int): Number of labels, with "no entity".
    hidden_width (int): Width of the span vectors.
    token_dropout (float): Dropout of the token vectors.
    hidden_dropout (float): Dropout of the span vectors on their way to the logits.
    """

    def __init__(
        self,
        *,
        width: int,
        n_labels: int,
        hidden_width: int = 256,
        token_dropout: float = 0.0,
        hidden_dropout: float = 0.4,
    ) -> None:
        super().__init__()
        _check_dropout(token_dropout=token_dropout, hidden_dropout=hidden_dropout)
        self.width = width
        self.n_labels = n_labels
        self.vector_width = hidden_width
        self.token_dropout = Dropout(token_dropout)
        self.hidden = nn.Linear(4 * width, hidden_width)
        self.hidden_dropout = Dropout(hidden_dropout)
        self.output = nn.Linear(hidden_width, n_labels)
        _init_linear(self.hidden, self.output)

    def prepare(self, tokens: Tensor) -> Projections:
        """tokens (Tensor): Token vectors. Shape: (tokens, width).
        RETURNS (Projections): Token vectors, and their projections as first and as last token.
            Shapes: (tokens, width), (tokens, hidden), (tokens, hidden).
        """
        tokens = self.token_dropout(tokens)
        of_first, of_last, of_difference, _ = self.hidden.weight.split(self.width, dim=1)
        as_first = F.linear(tokens, of_first + of_difference, self.hidden.bias)
        as_last = F.linear(tokens, of_last - of_difference)
        return tokens, as_first, as_last

    def score(self, projections: Projections, starts: Tensor, ends: Tensor) -> SpanOutput:
        """projections (Projections): From `prepare`.
        starts (Tensor): First token rows. Shape: (spans,).
        ends (Tensor): One after the last token rows. Shape: (spans,).
        RETURNS (SpanOutput): Logits and vectors.
        """
        tokens, as_first, as_last = projections
        last = ends - 1
        product = tokens.index_select(0, starts) * tokens.index_select(0, last)
        of_product = self.hidden.weight[:, 3 * self.width :]
        # In place on the gathered copy: new memory costs as much as the arithmetic.
        linear = as_first.index_select(0, starts).add_(as_last.index_select(0, last))
        vectors = tanh_(linear.addmm_(product, of_product.t()))
        return SpanOutput(self.output(self.hidden_dropout(vectors)), vectors)

    def represent(self, tokens: Tensor, starts: Tensor, ends: Tensor) -> Tensor:
        """RETURNS (Tensor): Shape: (spans, 4 · width)."""
        first, last = tokens.index_select(0, starts), tokens.index_select(0, ends - 1)
        return torch.cat((first, last, first - last, first * last), dim=1)

    def similarity(self, tokens: Tensor, anchor: Tensor, starts: Tensor, ends: Tensor) -> Tensor:
        """anchor (Tensor): Shape: (4 · width,).
        RETURNS (Tensor): Dot products with the normalised representations. Shape: (spans,).
        """
        of_first, of_last, of_difference, of_product = anchor.split(self.width)
        last = ends - 1
        product = tokens.index_select(0, starts) * tokens.index_select(0, last)
        dot = (tokens @ (of_first + of_difference)).index_select(0, starts)
        dot = dot + (tokens @ (of_last - of_difference)).index_select(0, last)
        dot = dot + product @ of_product
        squares = tokens.square().sum(1)
        both = squares.index_select(0, starts) + squares.index_select(0, last)
        # |a - b|^2 = |a|^2 + |b|^2 - 2ab
        norm = 2 * both - 2 * product.sum(1) + product.square().sum(1)
        return _by_norm(dot, norm)

    def forward(self, tokens: Tensor, starts: Tensor, ends: Tensor) -> SpanOutput:
        return self.score(self.prepare(tokens), starts, ends)


class WidthEmbeddingHead(nn.Module):
    r"""Zhong and Chen (2021), Xu et al. (2023):

    .. math::
        a_{ij} = \mathrm{ReLU}(A [h_i; h_j; e(j - i)] + a), \quad
        r_{ij} = \mathrm{ReLU}(B a_{ij} + b), \quad o_{ij} = V r_{ij}

    The first layer costs no matrix product a span: its width part is a table.

    width (int): Width of the token vectors.
    n_labels (int): Number of labels, with "no entity".
    max_width (int): Span widths that have their own embedding; wider spans share the last one.
    hidden_width (int): Width of both hidden layers.
    embedding_width (int): Width of the span-width embedding.
    token_dropout (float): Dropout of the token vectors.
    hidden_dropout (float): Dropout after each hidden layer.
    """

    def __init__(
        self,
        *,
        width: int,
        n_labels: int,
        max_width: int,
        hidden_width: int = 150,
        embedding_width: int = 150,
        token_dropout: float = 0.0,
        hidden_dropout: float = 0.2,
    ) -> None:
        super().__init__()
        _check_dropout(token_dropout=token_dropout, hidden_dropout=hidden_dropout)
        if max_width < 1:
            raise ValueError(Errors.R100.format(max_width=max_width))
        self.width = width
        self.n_labels = n_labels
        self.vector_width = hidden_width
        self.token_dropout = Dropout(token_dropout)
        self.embedding = nn.Embedding(max_width, embedding_width)
        self.hidden = nn.Linear(2 * width + embedding_width, hidden_width)
        self.hidden2 = nn.Linear(hidden_width, hidden_width)
        self.hidden_dropout = Dropout(hidden_dropout)
        self.output = nn.Linear(hidden_width, n_labels)
        _init_linear(self.hidden, self.hidden2, self.output)

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any) -> None:
        # As many widths have an embedding as had one in training, whatever max_width is now.
        saved = state_dict.get(f"{prefix}embedding.weight", self.embedding.weight)
        if saved.shape != self.embedding.weight.shape:
            table = self.embedding.weight.new_empty(saved.shape)
            self.embedding = nn.Embedding.from_pretrained(table, freeze=False)
        super()._load_from_state_dict(state_dict, prefix, *args)

    def prepare(self, tokens: Tensor) -> Projections:
        """tokens (Tensor): Token vectors. Shape: (tokens, width).
        RETURNS (Projections): Projections of the tokens as first and as last token, and of the
            span widths. Shapes: (tokens, hidden), (tokens, hidden), (max_width, hidden).
        """
        tokens = self.token_dropout(tokens)
        of_first, of_last, of_width = self.hidden.weight.split(
            (self.width, self.width, self.embedding.embedding_dim), dim=1
        )
        return (
            F.linear(tokens, of_first, self.hidden.bias),
            F.linear(tokens, of_last),
            F.linear(self.embedding.weight, of_width),
        )

    def score(self, projections: Projections, starts: Tensor, ends: Tensor) -> SpanOutput:
        """projections (Projections): From `prepare`.
        starts (Tensor): First token rows. Shape: (spans,).
        ends (Tensor): One after the last token rows. Shape: (spans,).
        RETURNS (SpanOutput): Logits and vectors.
        """
        as_first, as_last, by_width = projections
        widths = self._width_rows(starts, ends)
        linear = as_first.index_select(0, starts)
        linear.add_(as_last.index_select(0, ends - 1)).add_(by_width.index_select(0, widths))
        inner = self.hidden_dropout(linear.relu_())
        vectors = torch.relu(self.hidden2(inner))
        return SpanOutput(self.output(self.hidden_dropout(vectors)), vectors)

    def represent(self, tokens: Tensor, starts: Tensor, ends: Tensor) -> Tensor:
        """RETURNS (Tensor): Shape: (spans, 2 · width + embedding width)."""
        parts = tokens.index_select(0, starts), tokens.index_select(0, ends - 1)
        return torch.cat((*parts, self.embedding(self._width_rows(starts, ends))), dim=1)

    def similarity(self, tokens: Tensor, anchor: Tensor, starts: Tensor, ends: Tensor) -> Tensor:
        """anchor (Tensor): Shape: (2 · width + embedding width,).
        RETURNS (Tensor): Dot products with the normalised representations. Shape: (spans,).
        """
        of_first, of_last, of_width = anchor.split(
            (self.width, self.width, self.embedding.embedding_dim)
        )
        parts = (
            (tokens, of_first, starts),
            (tokens, of_last, ends - 1),
            (self.embedding.weight, of_width, self._width_rows(starts, ends)),
        )
        return _sum_of_parts(parts)

    def _width_rows(self, starts: Tensor, ends: Tensor) -> Tensor:
        return (ends - starts - 1).clamp(max=self.embedding.num_embeddings - 1)

    def forward(self, tokens: Tensor, starts: Tensor, ends: Tensor) -> SpanOutput:
        return self.score(self.prepare(tokens), starts, ends)


class BiaffineHead(nn.Module):
    r"""Yu et al. (2020), with start and end views :math:`s = \mathrm{ReLU}(S h)` and
    :math:`e = \mathrm{ReLU}(E h)` of each token:

    .. math::
        o_{ijl} = s_i^\top U_l e_j + W_l [s_i; e_j] + b_l, \quad r_{ij} = s_i + e_j

    width (int): Width of the token vectors.
    n_labels (int): Number of labels, with "no entity".
    hidden_width (int): Width of the start and end views.
    token_dropout (float): Dropout of the token vectors.
    hidden_dropout (float): Dropout of the start and end views.
    """

    def __init__(
        self,
        *,
        width: int,
        n_labels: int,
        hidden_width: int = 150,
        token_dropout: float = 0.0,
        hidden_dropout: float = 0.2,
    ) -> None:
        super().__init__()
        _check_dropout(token_dropout=token_dropout, hidden_dropout=hidden_dropout)
        self.width = width
        self.n_labels = n_labels
        self.vector_width = hidden_width
        self.token_dropout = Dropout(token_dropout)
        self.start = nn.Linear(width, hidden_width)
        self.end = nn.Linear(width, hidden_width)
        self.hidden_dropout = Dropout(hidden_dropout)
        self.bilinear = nn.Parameter(torch.empty(hidden_width, n_labels, hidden_width))
        self.output = nn.Linear(2 * hidden_width, n_labels)
        nn.init.normal_(self.bilinear, std=1.0 / hidden_width)
        _init_linear(self.start, self.end, self.output)

    def prepare(self, tokens: Tensor) -> Projections:
        """tokens (Tensor): Token vectors. Shape: (tokens, width).
        RETURNS (Projections): Start and end views before dropout, the end views after it, the
            start views through the bilinear form (plus the linear weight of the end views), and
            the logits of the start views. Shapes: (tokens, hidden) three times,
            (tokens, labels, hidden), (tokens, labels).
        """
        tokens = self.token_dropout(tokens)
        start_view = torch.relu(self.start(tokens))
        end_view = torch.relu(self.end(tokens))
        start, end = self.hidden_dropout(start_view), self.hidden_dropout(end_view)
        of_start, of_end = self.output.weight.chunk(2, dim=1)
        bilinear = torch.einsum("th,hlk->tlk", start, self.bilinear) + of_end
        return start_view, end_view, end, bilinear, F.linear(start, of_start, self.output.bias)

    def score(self, projections: Projections, starts: Tensor, ends: Tensor) -> SpanOutput:
        """projections (Projections): From `prepare`.
        starts (Tensor): First token rows. Shape: (spans,).
        ends (Tensor): One after the last token rows. Shape: (spans,).
        RETURNS (SpanOutput): Logits and vectors.
        """
        start_view, end_view, end, bilinear, start_logits = projections
        last = ends - 1
        ended = torch.bmm(
            bilinear.index_select(0, starts), end.index_select(0, last).unsqueeze(2)
        ).squeeze(2)
        logits = ended + start_logits.index_select(0, starts)
        vectors = start_view.index_select(0, starts) + end_view.index_select(0, last)
        return SpanOutput(logits, vectors)

    def represent(self, tokens: Tensor, starts: Tensor, ends: Tensor) -> Tensor:
        """RETURNS (Tensor): Start and end views. Shape: (spans, 2 · hidden)."""
        start, end = torch.relu(self.start(tokens)), torch.relu(self.end(tokens))
        return torch.cat((start.index_select(0, starts), end.index_select(0, ends - 1)), dim=1)

    def similarity(self, tokens: Tensor, anchor: Tensor, starts: Tensor, ends: Tensor) -> Tensor:
        """anchor (Tensor): Shape: (2 · hidden,).
        RETURNS (Tensor): Dot products with the normalised representations. Shape: (spans,).
        """
        of_start, of_end = anchor.chunk(2)
        start, end = torch.relu(self.start(tokens)), torch.relu(self.end(tokens))
        return _sum_of_parts(((start, of_start, starts), (end, of_end, ends - 1)))

    def forward(self, tokens: Tensor, starts: Tensor, ends: Tensor) -> SpanOutput:
        return self.score(self.prepare(tokens), starts, ends)
