"""The frame of both networks: an encoder, and a head that is asked apart from it."""

from collections.abc import Callable
from typing import Any

from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats2d


def encoder_and_head(
    name: str,
    tok2vec: Model[list[Doc], list[Floats2d]],
    head: Model[Any, Any],
    *,
    attrs: dict[str, Any],
) -> Model[list[Doc], list[Floats2d]]:
    """Make a model whose output are the token vectors. The head is a layer of its own, for the
    component to call. Its output width is the model's dim nO.

    name (str): The model's name.
    tok2vec (Model[List[Doc], List[Floats2d]]): The encoder, or a listener to a shared one.
    head (Model): From `torch_layer`.
    attrs (Dict[str, Any]): Attributes of the model.
    RETURNS (Model): The model, with the references "tok2vec" and "head".
    """
    return Model(
        name,
        _forward,
        init=_init,
        layers=[tok2vec, head],
        refs={"tok2vec": tok2vec, "head": head},
        attrs=attrs,
        dims={"nO": None},
    )


def _forward(
    model: Model[list[Doc], list[Floats2d]], docs: list[Doc], is_train: bool
) -> tuple[list[Floats2d], Callable[[list[Floats2d]], Any]]:
    return model.get_ref("tok2vec")(docs, is_train)


def _init(
    model: Model[list[Doc], list[Floats2d]],
    X: list[Doc] | None = None,
    Y: Any = None,
) -> None:
    tok2vec, head = model.get_ref("tok2vec"), model.get_ref("head")
    tok2vec.initialize(X=X)
    if X is not None:
        head.set_dim("nI", tok2vec.predict(X)[0].shape[1], force=True)
    if model.has_dim("nO"):
        head.set_dim("nO", model.get_dim("nO"), force=True)
    head.initialize()
