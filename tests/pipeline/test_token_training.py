"""Training of the token component: encoders, epochs, determinism, resuming, recipes."""

import pytest
import spacy
from spacy.cli.train import train as train_cli
from spacy.util import load_model
from span_pipes import (
    TRAIN_DATA,
    assert_same_ents,
    change,
    example_of,
    make_examples,
    misc,
    save_corpus,
    spans_of,
    tiny_training,
    train,
    weights,
)
from token_pipes import (
    NAME,
    make_shared_token_nlp,
    make_token_nlp,
    make_trf_token_nlp,
    tags_of,
    two_step,
)

from spacy_robust_ner.pipeline.callbacks import track_epochs
from spacy_robust_ner.recipes import METHODS, config_text, make_config

EXPECTED = [(0, 2, "PER"), (4, 5, "LOC")]
TEXTS = [text for text, _ in TRAIN_DATA]
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
HEADS = [("SoftmaxHead", True), ("SoftmaxHead", False), ("AngleHead", True), ("AngleHead", False)]


@pytest.fixture(params=["own", "bilstm", "shared", "transformer"])
def make(request):
    if request.param == "own":
        return make_token_nlp
    if request.param == "bilstm":
        return lambda **settings: make_token_nlp(tok2vec=BILSTM, **settings)
    if request.param == "shared":
        return make_shared_token_nlp
    path = request.getfixturevalue("tiny_bert")
    return lambda **settings: make_trf_token_nlp(path, **settings)


@pytest.mark.parametrize(("head", "crf"), HEADS)
def test_every_encoder_with_every_head(make, head, crf):
    loss = "CRFLikelihood" if crf else "TokenCrossEntropy"
    settings = {"head": head, "crf": crf, "loss": loss, "head_learn_rate_scale": 3.0}
    nlp = make(**settings)
    examples = make_examples(nlp)
    train(nlp, examples, steps=50, learn_rate=0.004)
    assert nlp.evaluate(examples)["ents_f"] == 1.0
    docs = list(nlp.pipe(["", TEXTS[0], "x", ""]))
    assert spans_of(docs[1].ents) == EXPECTED
    saved = make(seed=5, **settings).from_bytes(nlp.to_bytes())
    assert_same_ents([nlp(TEXTS[0])], [saved(TEXTS[0])], tolerance=0)


def test_the_encoder_learns(make):
    nlp = make()
    optimizer = nlp.initialize(lambda: make_examples(nlp))
    optimizer.L2 = 0.0
    first = nlp.pipeline[0][1].model
    model = first.get_ref("tok2vec") if "tok2vec" in first.ref_names else first
    before = weights(model)
    # As the training loop does: a shared encoder has its gradients after all others.
    nlp.update(make_examples(nlp), sgd=False)
    for _, pipe in nlp.pipeline:
        pipe.finish_update(optimizer)
    assert change(before, weights(model)) > 1e-5


def test_replace_listeners():
    nlp = make_shared_token_nlp()
    train(nlp, make_examples(nlp), steps=30)
    before = list(nlp.pipe(TEXTS))
    nlp.replace_listeners("tok2vec", NAME, ["model.tok2vec"])
    nlp.remove_pipe("tok2vec")
    assert sum(len(doc.ents) for doc in before) == 3
    assert_same_ents(before, list(nlp.pipe(TEXTS)))


def test_the_head_has_its_own_learning_rate():
    moved = []
    for scale in (1.0, 10.0):
        nlp = make_token_nlp(head_learn_rate_scale=scale)
        examples = make_examples(nlp)
        optimizer = nlp.initialize(lambda examples=examples: examples)
        model = nlp.get_pipe(NAME).model
        parts = [model.get_ref("tok2vec"), model.get_ref("head")]
        before = [weights(part) for part in parts]
        nlp.update(examples, sgd=optimizer)
        moved.append([change(b, weights(p)) for b, p in zip(before, parts, strict=True)])
    assert moved[0][0] == pytest.approx(moved[1][0], rel=1e-3)
    assert moved[1][1] == pytest.approx(10 * moved[0][1], rel=0.05)


def test_same_seed_same_training():
    settings = {
        "dropout": 0.2,
        "two_step": two_step(share=0.2),
        "non_sampling": misc("NonSpanSampler", rate=0.3),
    }
    histories = []
    for seed in (3, 3, 4):
        nlp = make_token_nlp(seed=seed, **settings)
        histories.append(train(nlp, make_examples(nlp), steps=5))
    assert histories[0] == histories[1]
    assert histories[0] != histories[2]


def test_epochs_are_told_or_counted():
    nlp = make_token_nlp()
    examples = make_examples(nlp)
    optimizer = nlp.initialize(lambda: examples)
    pipe = nlp.get_pipe(NAME)
    for expected in (0, 0, 1, 1, 2):
        assert pipe.progress.epoch == expected
        nlp.update(examples[:1], sgd=optimizer)
    track_epochs(nlp, {"step": 9, "epoch": 7})
    assert pipe.progress.epoch == 7


def test_resumed_training_goes_on_with_the_epochs(tmp_path):
    """Draws of NON spans depend on the epoch; they must not start over."""
    nlp = make_token_nlp(non_sampling=misc("NonSpanSampler", rate=0.4, max_width=2))
    words = [f"w{i}" for i in range(12)]
    example = example_of(nlp, words, [(3, 5, "PER")])
    optimizer = nlp.initialize(lambda: [example])
    for _ in range(3):
        nlp.update([example], sgd=optimizer)
    drawn, _ = tags_of(nlp, [example])
    nlp.to_disk(tmp_path)
    loaded = spacy.load(tmp_path)
    assert loaded.get_pipe(NAME).progress.epoch == 3
    assert tags_of(loaded, [example_of(loaded, words, [(3, 5, "PER")])])[0] == drawn
    loaded.get_pipe(NAME).progress.resume(0)
    assert tags_of(loaded, [example_of(loaded, words, [(3, 5, "PER")])])[0] != drawn


@pytest.mark.parametrize(
    "method", [name for name, method in METHODS.items() if method.group == "token"]
)
def test_recipes_train_on_the_command_line(method, tmp_path):
    path = save_corpus(spacy.blank("en"), tmp_path / "train.spacy")
    config = tiny_training(make_config(method, "cnn"), train_path=path, dev_path=path, steps=2)
    (tmp_path / "config.cfg").write_text(config_text(config), encoding="utf8")
    train_cli(tmp_path / "config.cfg", tmp_path / "out")
    nlp = load_model(tmp_path / "out" / "model-last")
    pipe = nlp.get_pipe(NAME)
    assert pipe.labels == ("LOC", "PER")
    assert pipe.head.with_non_entity == method.startswith("two-step")
    assert (pipe.removed is not None) == method.startswith("two-step")
    assert_same_ents(list(nlp.pipe(TEXTS)), [nlp(text) for text in TEXTS])
