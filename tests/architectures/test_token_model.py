import numpy as np
import pytest
import spacy
import torch
from spacy.ml.models import build_hash_embed_cnn_tok2vec

from spacy_robust_ner.architectures.token_model import (
    build_token_model_v1,
    make_angle_head_v1,
    make_softmax_head_v1,
)
from spacy_robust_ner.architectures.torch_layer import torch_module
from spacy_robust_ner.tagging.heads import AngleHead, SoftmaxHead

HEADS = {
    "softmax": (make_softmax_head_v1, SoftmaxHead),
    "angle": (make_angle_head_v1, AngleHead),
}
# Tags of three labels: O, and two or four a type.
SIZES = [("bio", False, 7), ("bio", True, 9), ("bioes", False, 13), ("bioes", True, 17)]


def make_tok2vec():
    return build_hash_embed_cnn_tok2vec(
        width=12,
        depth=1,
        embed_size=50,
        window_size=1,
        maxout_pieces=2,
        subword_features=False,
        pretrained_vectors=None,
    )


def make_model(head, *, crf=False, scheme="bioes", with_non_entity=False):
    model = build_token_model_v1(make_tok2vec(), head, crf)
    options = {"scheme": scheme, "with_non_entity": with_non_entity}
    model.get_ref("head").attrs["build_options"] = options
    model.set_dim("nO", 3)
    return model


@pytest.fixture(scope="module")
def docs():
    nlp = spacy.blank("en")
    return [nlp.make_doc("a b c"), nlp.make_doc(""), nlp.make_doc("d")]


@pytest.mark.parametrize(("scheme", "with_non_entity", "n_tags"), SIZES)
@pytest.mark.parametrize("crf", [True, False])
@pytest.mark.parametrize("name", HEADS)
def test_sizes_come_from_encoder_labels_and_scheme(
    name, crf, scheme, with_non_entity, n_tags, docs
):
    builder, kind = HEADS[name]
    model = make_model(builder(), crf=crf, scheme=scheme, with_non_entity=with_non_entity)
    model.initialize(X=docs)
    module = torch_module(model.get_ref("head"))
    assert isinstance(module.head, kind)
    assert module(torch.zeros(5, 12)).shape == (5, n_tags)
    assert (module.crf is not None) == crf
    if crf:
        assert module.crf.transitions.shape == (n_tags, n_tags)


@pytest.mark.parametrize("name", HEADS)
def test_head_settings_arrive(name):
    head = HEADS[name][0](hidden_width=5, dropout=0.3)(width=8, n_tags=3)
    assert head.layers.hidden.weight.shape == (5, 8)
    assert head.layers.dropout.p == 0.3


def test_output_is_that_of_the_encoder(docs):
    model = make_model(make_softmax_head_v1())
    model.initialize(X=docs)
    encoder = model.get_ref("tok2vec")
    for own, expected in zip(model.predict(docs), encoder.predict(docs), strict=True):
        assert np.array_equal(own, expected)


@pytest.mark.parametrize(("scheme", "with_non_entity", "n_tags"), SIZES)
@pytest.mark.parametrize("name", HEADS)
def test_bytes_know_scheme_and_sizes(name, scheme, with_non_entity, n_tags, docs):
    """Whoever loads the model has not been told the scheme."""
    builder = HEADS[name][0]
    model = make_model(builder(), crf=True, scheme=scheme, with_non_entity=with_non_entity)
    model.initialize(X=docs)
    loaded = build_token_model_v1(make_tok2vec(), builder(), True)
    loaded.from_bytes(model.to_bytes())
    one, two = (torch_module(m.get_ref("head")) for m in (model, loaded))
    assert (two.scheme, two.with_non_entity) == (scheme, with_non_entity)
    assert len(two.crf.tag_set) == n_tags
    saved = one.state_dict()
    assert all(torch.equal(saved[key], value) for key, value in two.state_dict().items())
    assert torch.equal(one.crf.allowed_transitions, two.crf.allowed_transitions)
    tokens = torch.randn(4, 12, generator=torch.Generator().manual_seed(0))
    assert torch.equal(one.eval()(tokens), two.eval()(tokens))


def test_angle_values_sum_to_zero_after_loading(docs):
    model = make_model(make_angle_head_v1())
    model.initialize(X=docs)
    loaded = build_token_model_v1(make_tok2vec(), make_angle_head_v1(), False)
    loaded.from_bytes(model.to_bytes())
    values = torch_module(loaded.get_ref("head")).eval()(torch.randn(4, 12))
    assert values.abs().max() > 0.01
    assert values.sum(1).abs().max() < 1e-5
