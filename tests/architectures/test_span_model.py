import numpy as np
import pytest
import spacy
import torch
from spacy.ml.models import build_hash_embed_cnn_tok2vec
from spacy.util import registry

from spacy_robust_ner.architectures.span_model import (
    DEFAULT_WIDTH_BUCKETS,
    build_span_model_v1,
    make_biaffine_head_v1,
    make_concat_product_head_v1,
    make_width_embedding_head_v1,
)
from spacy_robust_ner.architectures.torch_layer import torch_module
from spacy_robust_ner.span.heads import BiaffineHead, ConcatProductHead, WidthEmbeddingHead

HEADS = {
    "concat": (make_concat_product_head_v1, ConcatProductHead),
    "width": (make_width_embedding_head_v1, WidthEmbeddingHead),
    "biaffine": (make_biaffine_head_v1, BiaffineHead),
}


def tok2vec(width=12):
    return build_hash_embed_cnn_tok2vec(
        width=width,
        depth=1,
        embed_size=50,
        window_size=1,
        maxout_pieces=2,
        subword_features=False,
        pretrained_vectors=None,
    )


def make_model(head, **settings):
    model = build_span_model_v1(tok2vec(), head, **settings)
    model.set_dim("nO", 4)
    return model


@pytest.fixture(scope="module")
def docs():
    nlp = spacy.blank("en")
    return [nlp.make_doc("a b c"), nlp.make_doc(""), nlp.make_doc("d")]


@pytest.mark.parametrize("name", HEADS)
def test_sizes_come_from_encoder_and_labels(name, docs):
    builder, kind = HEADS[name]
    model = make_model(builder(hidden_width=7))
    model.initialize(X=docs)
    head = torch_module(model.get_ref("head"))
    assert isinstance(head, kind)
    assert (head.width, head.n_labels, head.vector_width) == (12, 4, 7)


@pytest.mark.parametrize("name", HEADS)
def test_head_settings_arrive(name):
    head = HEADS[name][0](hidden_width=5, token_dropout=0.1, hidden_dropout=0.3)(6)(8, 3)
    assert (head.width, head.n_labels, head.vector_width) == (8, 3, 5)
    assert (head.token_dropout.p, head.hidden_dropout.p) == (0.1, 0.3)


@pytest.mark.parametrize(("max_width", "buckets"), [(6, 6), (None, DEFAULT_WIDTH_BUCKETS)])
def test_width_embeddings_follow_the_widest_span(max_width, buckets):
    head = make_width_embedding_head_v1(hidden_width=5, embedding_width=3)(max_width)(8, 3)
    assert head.embedding.weight.shape == (buckets, 3)


def test_output_is_that_of_the_encoder(docs):
    model = make_model(make_concat_product_head_v1(hidden_width=7))
    model.initialize(X=docs)
    encoder = model.get_ref("tok2vec")
    for own, expected in zip(model.predict(docs), encoder.predict(docs), strict=True):
        assert np.array_equal(own, expected)
    vectors, backprop = model.begin_update(docs)
    assert [v.shape for v in vectors] == [(3, 12), (0, 12), (1, 12)]
    backprop([np.ones_like(v) for v in vectors])
    grads = [n.get_grad(p) for n in encoder.walk() for p in n.param_names if n.has_grad(p)]
    assert any(abs(grad).sum() > 0 for grad in grads)


@pytest.mark.parametrize("name", HEADS)
def test_bytes_build_the_head(name, docs):
    model = make_model(HEADS[name][0](hidden_width=7))
    model.initialize(X=docs)
    loaded = build_span_model_v1(tok2vec(), HEADS[name][0](hidden_width=7))
    loaded.from_bytes(model.to_bytes())
    one, two = (torch_module(m.get_ref("head")).state_dict() for m in (model, loaded))
    assert all(torch.equal(one[key], two[key]) for key in one)


@pytest.mark.parametrize(
    ("settings", "message"), [({"max_width": 0}, "R100"), ({"chunk_size": 0}, "R102")]
)
def test_settings_that_leave_no_candidates(settings, message):
    with pytest.raises(ValueError, match=message):
        build_span_model_v1(tok2vec(), make_concat_product_head_v1(), **settings)


@pytest.mark.parametrize(
    "name", ["SpanModel", "ConcatProductHead", "WidthEmbeddingHead", "BiaffineHead"]
)
def test_architectures_are_registered(name):
    assert callable(registry.architectures.get(f"spacy_robust_ner.{name}.v1"))


def test_head_starts_with_random_output_weights(docs):
    """A zero output layer would give the encoder no gradient in the first step."""
    for builder, _ in HEADS.values():
        model = make_model(builder(hidden_width=7))
        model.initialize(X=docs)
        assert torch_module(model.get_ref("head")).output.weight.abs().min() > 0
