"""Encoders of the span component: its own, shared ones, and transformers."""

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc
from spacy.util import fix_random_seed
from span_pipes import (
    NAME,
    TOK2VEC,
    TRAIN_DATA,
    assert_same_ents,
    change,
    example_of,
    make_examples,
    make_nlp,
    make_shared_nlp,
    misc,
    pipe_config,
    spans_of,
    step,
    train,
    weights,
)

EXPECTED = [(0, 2, "PER"), (4, 5, "LOC")]
BILSTM = {
    "@architectures": "spacy.Tok2Vec.v2",
    "embed": {
        "@architectures": "spacy.MultiHashEmbed.v2",
        "width": 16,
        "attrs": ["NORM", "SHAPE"],
        "rows": [100, 100],
        "include_static_vectors": False,
    },
    "encode": {
        "@architectures": "spacy.TorchBiLSTMEncoder.v1",
        "width": 16,
        "depth": 1,
        "dropout": 0.0,
    },
}
WEIGHTED = {"sampler": misc("WeightedSampler", rate=2.0)}


@pytest.fixture(scope="module")
def make_trf_nlp(tiny_bert):
    """Makes a pipeline with a tiny transformer that the span component listens to."""

    def make(*, seed=1, window=32, stride=24, others_after=(), **settings):
        fix_random_seed(seed)
        nlp = spacy.blank("xx")
        transformer = {
            "@architectures": "spacy-transformers.TransformerModel.v3",
            "name": str(tiny_bert),
            "tokenizer_config": {"use_fast": True},
            "get_spans": {
                "@span_getters": "spacy-transformers.strided_spans.v1",
                "window": window,
                "stride": stride,
            },
        }
        nlp.add_pipe("transformer", config={"model": transformer})
        listener = {
            "@architectures": "spacy-transformers.TransformerListener.v1",
            "grad_factor": 1.0,
            "pooling": {"@layers": "reduce_mean.v1"},
            "upstream": "*",
        }
        nlp.add_pipe(NAME, config=pipe_config(tok2vec=listener, **settings))
        for name in others_after:
            nlp.add_pipe(name, config={"model": {"tok2vec": listener}})
        return nlp

    return make


@pytest.fixture(params=["tok2vec", "transformer"])
def make_shared(request, make_trf_nlp):
    """Makes a pipeline with a shared encoder, which is its first component."""
    return make_shared_nlp if request.param == "tok2vec" else make_trf_nlp


def encoder_moves(nlp, examples, initialize_with=None, *, steps=1):
    """How far training moves the weights of the first component, without weight decay."""
    optimizer = nlp.initialize(lambda: initialize_with or examples)
    optimizer.L2 = 0.0
    model = nlp.pipeline[0][1].model
    before = weights(model)
    for _ in range(steps):
        losses = step(nlp, examples, optimizer)
    assert np.isfinite(losses[NAME])
    return change(before, weights(model))


@pytest.mark.parametrize("settings", [{}, WEIGHTED], ids=["all", "weighted"])
@pytest.mark.parametrize("encoder", [TOK2VEC, BILSTM], ids=["cnn", "bilstm"])
@pytest.mark.parametrize("make", [make_nlp, make_shared_nlp], ids=["own", "shared"])
def test_spans_are_learned_with(encoder, make, settings):
    where = {"tok2vec": encoder} if make is make_nlp else {"encoder": encoder}
    nlp = make(**where, **settings)
    examples = make_examples(nlp)
    train(nlp, examples, steps=60)
    assert spans_of(nlp(TRAIN_DATA[0][0]).ents) == EXPECTED
    assert nlp.evaluate(examples)["ents_f"] == 1.0


@pytest.mark.parametrize("settings", [{}, WEIGHTED], ids=["all", "weighted"])
def test_spans_are_learned_with_a_transformer(make_trf_nlp, settings):
    nlp = make_trf_nlp(head_learn_rate_scale=3.0, **settings)
    examples = make_examples(nlp)
    train(nlp, examples, steps=40, learn_rate=0.003)
    assert spans_of(nlp(TRAIN_DATA[0][0]).ents) == EXPECTED
    docs = list(nlp.pipe(["", TRAIN_DATA[0][0], "x", ""]))
    assert spans_of(docs[1].ents) == EXPECTED
    saved = make_trf_nlp(**settings).from_bytes(nlp.to_bytes())
    assert_same_ents([nlp(TRAIN_DATA[0][0])], [saved(TRAIN_DATA[0][0])], tolerance=0)


def test_shared_encoder_learns(make_shared):
    nlp = make_shared()
    assert encoder_moves(nlp, make_examples(nlp)) > 1e-5


def test_shared_encoder_learns_from_documents_without_positives(make_shared):
    nlp = make_shared()
    examples = [example_of(nlp, ["a", "b", "c"]), example_of(nlp, ["d", "e"])]
    assert encoder_moves(nlp, examples, make_examples(nlp)) > 1e-5


def test_shared_encoder_stays_where_nothing_is_known(make_shared):
    nlp = make_shared()
    examples = [example_of(nlp, ["a", "b"], missing=[0, 1])]
    assert encoder_moves(nlp, examples, make_examples(nlp)) == 0


def tagged_example(nlp):
    example = make_examples(nlp)[0]
    for token in example.reference:
        token.tag_ = "A" if token.i % 2 else "B"
    return example


def test_other_listeners_learn_though_nothing_is_sampled(make_shared):
    """The last listener runs the backward pass of all."""
    moved = []
    for others in (["tagger"], []):
        nlp = make_shared(others_after=others)
        if not others:
            nlp.add_pipe("tagger", before=NAME, config={"model": {"tok2vec": listener_of(nlp)}})
        example = tagged_example(nlp)
        unknown = [token.i for token in example.reference]
        nothing = example_of(nlp, [t.text for t in example.reference], missing=unknown)
        for token in nothing.reference:
            token.tag_ = "A" if token.i % 2 else "B"
        # The tagger's output starts at zero: it has a gradient from the second step on.
        moved.append(encoder_moves(nlp, [nothing], [example], steps=2))
    assert min(moved) > 1e-6


def listener_of(nlp):
    return nlp.get_pipe_config(NAME)["model"]["tok2vec"]


@pytest.mark.parametrize("span_pipe_is_last", [True, False])
def test_each_listener_gives_one_gradient_a_step(make_shared, span_pipe_is_last):
    nlp = make_shared(others_after=[] if span_pipe_is_last else ["tagger"])
    if span_pipe_is_last:
        nlp.add_pipe("tagger", before=NAME, config={"model": {"tok2vec": listener_of(nlp)}})
    example = tagged_example(nlp)
    nlp.initialize(lambda: [example])
    encoder = nlp.pipeline[0][1]
    received = {}
    for name in (NAME, "tagger"):
        listener = encoder.listener_map[name][0]
        received[name] = _spy_on(listener)
    before = weights(encoder.model)
    optimizer = nlp.create_optimizer()
    step(nlp, [example], optimizer)
    step(nlp, [example], optimizer)
    assert change(before, weights(encoder.model)) > 0
    assert received == {NAME: [True, True], "tagger": [False, True]}


def _spy_on(listener):
    """Note each gradient that comes back to the listener, and whether it is other than zero."""
    calls, receive = [], listener.receive

    def spying_receive(batch_id, outputs, backprop):
        def spying_backprop(gradients):
            tensors = [t for g in gradients for t in getattr(g, "tensors", [g])]
            calls.append(any(bool(np.abs(np.asarray(t)).max() > 0) for t in tensors))
            return backprop(gradients)

        receive(batch_id, outputs, spying_backprop)

    listener.receive = spying_receive
    return calls


def test_encoder_keeps_its_variance(make_trf_nlp):
    """A head that starts at zero lets a pretrained encoder collapse to one vector."""
    nlp = make_trf_nlp(head_learn_rate_scale=10.0)
    examples = make_examples(nlp)

    def spread():
        doc = nlp(TRAIN_DATA[0][0])
        return float(doc._.trf_data.model_output.last_hidden_state[0].std(0).mean())

    nlp.initialize(lambda: examples)
    before = spread()
    history = train(nlp, examples, steps=20, learn_rate=5e-4, initialize=False)
    assert history[-1][NAME] < history[0][NAME]
    assert spread() > 0.5 * before


def test_documents_longer_than_the_window(make_trf_nlp):
    nlp = make_trf_nlp(window=8, stride=6, head_learn_rate_scale=3.0)
    words = ["Nobody", "has", "ever", "come"] * 8 + ["Ada", "Lovelace"] + ["lives", "in"] * 8
    example = example_of(nlp, words, [(32, 34, "PER")])
    assert len(words) > 40
    train(nlp, [example], steps=40, learn_rate=0.003)
    doc = nlp(Doc(nlp.vocab, words=words))
    assert len(doc._.trf_data.tensors[0]) > 1, "several windows"
    assert spans_of(doc.ents) == [(32, 34, "PER")]


def test_replace_listeners(make_shared):
    nlp = make_shared(head_learn_rate_scale=3.0)
    examples = make_examples(nlp)
    train(nlp, examples, steps=30, learn_rate=0.003)
    before = list(nlp.pipe(text for text, _ in TRAIN_DATA))
    upstream = nlp.pipe_names[0]
    nlp.replace_listeners(upstream, NAME, ["model.tok2vec"])
    nlp.remove_pipe(upstream)
    after = list(nlp.pipe(text for text, _ in TRAIN_DATA))
    assert sum(len(doc.ents) for doc in before) > 0
    assert_same_ents(before, after)
    model = nlp.get_pipe(NAME).model
    old = weights(model.get_ref("tok2vec"))
    step(nlp, make_examples(nlp), nlp.resume_training())
    assert change(old, weights(model.get_ref("tok2vec"))) > 0


def test_source_from_another_pipeline(make_shared):
    source = make_shared(head_learn_rate_scale=3.0)
    train(source, make_examples(source), steps=20, learn_rate=0.003)
    upstream = source.pipe_names[0]
    nlp = spacy.blank("xx", vocab=source.vocab)
    nlp.add_pipe(upstream, source=source)
    nlp.add_pipe(NAME, name="renamed", source=source)
    texts = [text for text, _ in TRAIN_DATA]
    assert_same_ents(list(nlp.pipe(texts)), list(source.pipe(texts)))
    before = weights(nlp.get_pipe("renamed").model)
    losses = step(nlp, make_examples(nlp), nlp.resume_training())
    assert change(before, weights(nlp.get_pipe("renamed").model)) > 0
    assert losses[upstream] > 0
