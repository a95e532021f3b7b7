"""The network of the token component: an encoder for tokens and a head that scores their tags."""

from collections.abc import Callable
from functools import partial

from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats2d
from torch import Tensor, nn

from ..tagging.crf import CRF
from ..tagging.heads import AngleHead, SoftmaxHead
from ..tagging.tag_set import SchemeName, TagSet
from .encoder_and_head import encoder_and_head
from .torch_layer import torch_layer

# A head block gets the width of the token vectors and the number of tags, by name.
TokenHeadBuilder = Callable[..., nn.Module]


class TokenModule(nn.Module):
    """A token head, with or without a CRF over its decision values.

    width (int): Width of the token vectors.
    n_labels (int): Number of labels.
    head (TokenHeadBuilder): Makes the head.
    with_crf (bool): Add a CRF.
    scheme (str): "bio" or "bioes".
    with_non_entity (bool): Whether the type NON has tags.
    """

    def __init__(
        self,
        width: int,
        n_labels: int,
        *,
        head: TokenHeadBuilder,
        with_crf: bool,
        scheme: SchemeName,
        with_non_entity: bool,
    ) -> None:
        super().__init__()
        self.scheme: SchemeName = scheme
        self.with_non_entity = with_non_entity
        # What the tags are called is the component's business; the CRF needs to know their order.
        tag_set = TagSet(
            [str(i) for i in range(n_labels)], scheme=scheme, with_non_entity=with_non_entity
        )
        self.head = head(width=width, n_tags=len(tag_set))
        self.crf = CRF(tag_set) if with_crf else None

    def forward(self, tokens: Tensor) -> Tensor:
        """tokens (Tensor): Token vectors. Shape: (tokens, width).
        RETURNS (Tensor): Decision values. Shape: (tokens, tags).
        """
        decisions: Tensor = self.head(tokens)
        return decisions


def build_token_model_v1(
    tok2vec: Model[list[Doc], list[Floats2d]], head: TokenHeadBuilder, crf: bool = False
) -> Model[list[Doc], list[Floats2d]]:
    """Build the model of `robust_token_tagger`.

    Its output are the token vectors. The head and the CRF are a layer of their own (the reference
    "head"), with the number of labels as output width. The component says in that layer's
    attribute "build_options" which tags there are for a label; they are saved with the weights.

    tok2vec (Model[List[Doc], List[Floats2d]]): The encoder, or a listener to a shared one.
    head (TokenHeadBuilder): Which head scores tags.
    crf (bool): Whether a CRF is over the head.
    RETURNS (Model): The model.
    """
    head_layer = torch_layer("token_head", partial(TokenModule, head=head, with_crf=crf))
    return encoder_and_head(
        "robust_token_model",
        tok2vec,
        head_layer,
        attrs={"crf": crf, "removed": None, "random_state": None},
    )


def make_softmax_head_v1(hidden_width: int | None = None, dropout: float = 0.1) -> TokenHeadBuilder:
    """One free value for each tag.

    hidden_width (Optional[int]): Width of a hidden layer; None for no such layer.
    dropout (float): Dropout of the token vectors and of the hidden layer.
    RETURNS (TokenHeadBuilder): The head block.
    """
    return partial(SoftmaxHead, hidden_width=hidden_width, dropout=dropout)


def make_angle_head_v1(hidden_width: int | None = None, dropout: float = 0.1) -> TokenHeadBuilder:
    """Values that sum to zero: inner products with the vertices of a simplex.

    hidden_width (Optional[int]): Width of a hidden layer; None for no such layer.
    dropout (float): Dropout of the token vectors and of the hidden layer.
    RETURNS (TokenHeadBuilder): The head block.
    """
    return partial(AngleHead, hidden_width=hidden_width, dropout=dropout)
