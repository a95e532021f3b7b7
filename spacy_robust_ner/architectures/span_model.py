"""The network of the span component: an encoder for tokens and a head that scores spans."""

from collections.abc import Callable
from functools import partial
from typing import Any

from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats2d
from torch import nn

from ..errors import Errors
from ..span.heads import BiaffineHead, ConcatProductHead, WidthEmbeddingHead
from .encoder_and_head import encoder_and_head
from .torch_layer import ModuleBuilder, torch_layer

DEFAULT_WIDTH_BUCKETS = 16

# A head block gets the widest span from the model, since the model decides on the candidates.
SpanHeadBuilder = Callable[[int | None], ModuleBuilder]


def build_span_model_v1(
    tok2vec: Model[list[Doc], list[Floats2d]],
    head: SpanHeadBuilder,
    max_width: int | None = 10,
    chunk_size: int = 32768,
) -> Model[list[Doc], list[Floats2d]]:
    """Build the model of `robust_span_ner`.

    Its output are the token vectors. The head is a layer of its own (the reference "head") that
    scores any spans of them, so that nobody pays for spans that nobody asks for.

    tok2vec (Model[List[Doc], List[Floats2d]]): The encoder, or a listener to a shared one.
    head (SpanHeadBuilder): Which head scores spans.
    max_width (Optional[int]): Tokens in the widest span that can be found; None for all.
    chunk_size (int): The greatest number of spans that are scored at a time. It bounds memory,
        whatever the documents' length.
    RETURNS (Model): The model.
    """
    if max_width is not None and max_width < 1:
        raise ValueError(Errors.R100.format(max_width=max_width))
    if chunk_size < 1:
        raise ValueError(Errors.R102.format(budget=chunk_size))
    head_layer = torch_layer("span_head", head(max_width))
    return encoder_and_head(
        "robust_span_model",
        tok2vec,
        head_layer,
        attrs={
            "max_width": max_width,
            "chunk_size": chunk_size,
            "centroids": None,
            "random_state": None,
        },
    )


def make_concat_product_head_v1(
    hidden_width: int = 256, token_dropout: float = 0.0, hidden_dropout: float = 0.4
) -> SpanHeadBuilder:
    """The head of Li et al.: first token, last token, their difference and product.

    hidden_width (int): Width of the span vectors.
    token_dropout (float): Dropout of the token vectors.
    hidden_dropout (float): Dropout of the span vectors.
    RETURNS (SpanHeadBuilder): The head block.
    """
    return partial(
        _head_builder,
        ConcatProductHead,
        hidden_width=hidden_width,
        token_dropout=token_dropout,
        hidden_dropout=hidden_dropout,
    )


def make_width_embedding_head_v1(
    hidden_width: int = 150,
    embedding_width: int = 150,
    token_dropout: float = 0.0,
    hidden_dropout: float = 0.2,
) -> SpanHeadBuilder:
    """The head of Zhong and Chen: first token, last token and an embedding of the width.

    hidden_width (int): Width of both hidden layers.
    embedding_width (int): Width of the width embedding.
    token_dropout (float): Dropout of the token vectors.
    hidden_dropout (float): Dropout after each hidden layer.
    RETURNS (SpanHeadBuilder): The head block.
    """
    return partial(
        _width_head_builder,
        hidden_width=hidden_width,
        embedding_width=embedding_width,
        token_dropout=token_dropout,
        hidden_dropout=hidden_dropout,
    )


def make_biaffine_head_v1(
    hidden_width: int = 150, token_dropout: float = 0.0, hidden_dropout: float = 0.2
) -> SpanHeadBuilder:
    """The head of Yu et al.: a biaffine form of a start and an end view.

    hidden_width (int): Width of the start and end views.
    token_dropout (float): Dropout of the token vectors.
    hidden_dropout (float): Dropout of the views.
    RETURNS (SpanHeadBuilder): The head block.
    """
    return partial(
        _head_builder,
        BiaffineHead,
        hidden_width=hidden_width,
        token_dropout=token_dropout,
        hidden_dropout=hidden_dropout,
    )


def _head_builder(
    head: Callable[..., nn.Module], max_width: int | None, **settings: Any
) -> ModuleBuilder:
    return partial(_build_head, head, **settings)


def _width_head_builder(max_width: int | None, **settings: Any) -> ModuleBuilder:
    buckets = DEFAULT_WIDTH_BUCKETS if max_width is None else max_width
    return partial(_build_head, WidthEmbeddingHead, max_width=buckets, **settings)


def _build_head(
    head: Callable[..., nn.Module], width_in: int, width_out: int, **settings: Any
) -> nn.Module:
    return head(width=width_in, n_labels=width_out, **settings)
