"""Epochs with and without the callback, and real runs of `spacy train`."""

import numpy as np
import pytest
import spacy
from spacy.cli.train import train as spacy_train
from spacy.util import registry
from span_pipes import (
    INDEPENDENT_SPANS,
    NAME,
    TRAIN_DATA,
    change,
    make_examples,
    make_nlp,
    misc,
    save_corpus,
    step,
    tiny_training,
    train,
    weights,
)

from spacy_robust_ner.pipeline.callbacks import track_epochs
from spacy_robust_ner.pipeline.progress import TrainingProgress
from spacy_robust_ner.recipes import make_config

DATA = [*TRAIN_DATA, ("Grace Hopper came to Berlin .", [(0, 12, "PER"), (21, 27, "LOC")])]


def test_epochs_are_counted_by_examples():
    progress = TrainingProgress(examples_per_epoch=3)
    epochs = []
    for _ in range(5):
        epochs.append(progress.epoch)
        progress.count(2)
    assert epochs == [0, 0, 1, 2, 2]


def test_without_a_count_there_are_no_epochs():
    progress = TrainingProgress()
    progress.count(100)
    assert progress.epoch == 0


def test_a_told_epoch_is_the_truth():
    progress = TrainingProgress(examples_per_epoch=1)
    progress.tell(0)
    progress.count(5)
    assert progress.epoch == 0
    progress.tell(1)
    assert progress.epoch == 1


def test_resumed_epochs_are_added():
    progress = TrainingProgress(examples_per_epoch=2)
    progress.resume(4)
    progress.count(2)
    assert progress.epoch == 5
    progress.tell(2)
    assert progress.epoch == 6


def test_plain_updates_follow_epochs():
    nlp = make_nlp(loss=misc("NRCES", w=1.0), max_epochs=3)
    examples = make_examples(nlp, DATA)
    optimizer = nlp.initialize(lambda: examples)
    pipe, epochs = nlp.get_pipe(NAME), []
    for _ in range(3):
        for example in examples:
            epochs.append(pipe.progress.epoch)
            step(nlp, [example], optimizer)
    assert epochs == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert pipe.cfg["epoch"] == 3


def test_callback_reaches_every_component_that_counts():
    nlp = make_nlp()
    nlp.add_pipe("sentencizer")
    nlp.add_pipe(NAME, name="second", config=INDEPENDENT_SPANS)
    track_epochs(nlp, {"step": 17, "epoch": 4})
    assert [nlp.get_pipe(name).progress.epoch for name in (NAME, "second")] == [4, 4]
    assert registry.callbacks.get("spacy_robust_ner.track_epochs.v1")() is track_epochs


def test_schedules_follow_the_epoch():
    """The loss of the same weights and spans changes with the epoch alone."""
    nlp = make_nlp(loss=misc("NRCES", w=1.0))
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    losses = []
    for epoch in (0, 1, 50):
        track_epochs(nlp, {"step": 0, "epoch": epoch})
        losses.append(nlp.update(examples, sgd=False)[NAME])
    plain = make_nlp()
    plain.initialize(lambda: examples)
    assert losses[0] == pytest.approx(plain.update(examples, sgd=False)[NAME], rel=1e-6)
    assert losses[0] > losses[1] > losses[2]


@pytest.fixture
def corpus(tmp_path):
    nlp = spacy.blank("xx")
    return {
        "train_path": save_corpus(nlp, tmp_path / "train.spacy", DATA),
        "dev_path": save_corpus(nlp, tmp_path / "dev.spacy", TRAIN_DATA),
    }


@registry.callbacks("test_callbacks.note_epochs.v1")
def make_note_epochs():
    def note(nlp, args):
        track_epochs(nlp, args)
        EPOCHS.append((args["epoch"], nlp.get_pipe(NAME).progress.epoch))

    return note


EPOCHS: list[tuple[int, int]] = []


def run(config, tmp_path, name="out"):
    path = tmp_path / f"{name}.cfg"
    config.to_disk(path)
    spacy_train(path, tmp_path / name)
    return spacy.load(tmp_path / name / "model-last")


def test_train_run_follows_the_true_epochs(corpus, tmp_path):
    EPOCHS.clear()
    config = tiny_training(make_config("nrces", "cnn", lang="xx"), **corpus, steps=5)
    config["training"]["batcher"] = {"@batchers": "spacy.batch_by_sequence.v1", "size": 2}
    config["training"]["before_update"] = {"@callbacks": "test_callbacks.note_epochs.v1"}
    nlp = run(config, tmp_path)
    assert [told for told, _ in EPOCHS] == [0, 0, 1, 1, 2, 2]
    assert all(told == seen for told, seen in EPOCHS)
    assert nlp.get_pipe(NAME).progress.epoch == 2
    resumed = tiny_training(make_config("nrces", "cnn", lang="xx"), **corpus, steps=3)
    resumed["training"]["batcher"] = {"@batchers": "spacy.batch_by_sequence.v1", "size": 2}
    resumed["training"]["before_update"] = {"@callbacks": "test_callbacks.note_epochs.v1"}
    for component in ("tok2vec", NAME):
        resumed["components"][component] = {"source": str(tmp_path / "out" / "model-last")}
    EPOCHS.clear()
    run(resumed, tmp_path, "resumed")
    assert EPOCHS == [(0, 2), (0, 2), (1, 3), (1, 3)]


def test_train_run_fits_centroids_with_the_weights_it_saves(corpus, tmp_path):
    config = tiny_training(make_config("scl-rai", "cnn", lang="xx"), **corpus)
    nlp = run(config, tmp_path)
    pipe = nlp.get_pipe(NAME)
    saved = pipe.centroids
    assert saved.counts[1:].tolist() == [3, 2]
    fitted = pipe.fit_centroids(nlp, make_examples(nlp, DATA))
    assert np.allclose(saved.means[1:], fitted.means[1:], atol=1e-5)
    assert len(list(nlp.pipe(text for text, _ in DATA))) == 3


def test_limit_of_the_centroid_callback(corpus, tmp_path):
    config = tiny_training(make_config("scl-rai", "cnn", lang="xx"), **corpus, steps=2)
    config["training"]["before_to_disk"]["limit"] = 1
    counts = run(config, tmp_path).get_pipe(NAME).centroids.counts
    assert counts[1:].tolist() == [1, 1]


def test_centroid_callback_leaves_other_pipelines_alone():
    nlp = make_nlp()
    train(nlp, make_examples(nlp), steps=1)
    fit = registry.callbacks.get("spacy_robust_ner.fit_centroids.v1")()
    assert fit(nlp) is nlp, "and asks for no corpus"
    assert nlp.get_pipe(NAME).centroids is None


def test_two_train_runs_are_bit_equal(corpus, tmp_path):
    config = tiny_training(make_config("span-nsv", "cnn", lang="xx"), **corpus)
    one, two = run(config, tmp_path, "one"), run(config, tmp_path, "two")
    for name in ("tok2vec", NAME):
        assert change(weights(one.get_pipe(name).model), weights(two.get_pipe(name).model)) == 0


def test_frozen_and_annotating_components(corpus, tmp_path):
    """A frozen encoder that annotates; the span component learns, and annotates itself."""
    first = run(
        tiny_training(make_config("span-ns", "cnn", lang="xx"), **corpus), tmp_path, "first"
    )
    config = tiny_training(make_config("span-ns", "cnn", lang="xx"), **corpus)
    config["components"]["tok2vec"] = {"source": str(tmp_path / "first" / "model-last")}
    config["components"][NAME]["model"]["tok2vec"]["width"] = 16
    config["training"]["frozen_components"] = ["tok2vec"]
    config["training"]["annotating_components"] = ["tok2vec", NAME]
    second = run(config, tmp_path, "second")
    old, new = (weights(nlp.get_pipe("tok2vec").model) for nlp in (first, second))
    assert change(old, new) == 0
    old, new = (weights(nlp.get_pipe(NAME).model) for nlp in (first, second))
    assert change(old, new) > 0


def test_frozen_span_component(corpus, tmp_path):
    first = run(
        tiny_training(make_config("span-ns", "cnn", lang="xx"), **corpus), tmp_path, "first"
    )
    config = tiny_training(make_config("span-ns", "cnn", lang="xx"), **corpus)
    source = str(tmp_path / "first" / "model-last")
    config["components"][NAME] = {"source": source, "replace_listeners": ["model.tok2vec"]}
    config["components"]["tagger"] = {
        "factory": "tagger",
        "model": {
            "@architectures": "spacy.Tagger.v2",
            "nO": None,
            "normalize": False,
            "tok2vec": {
                "@architectures": "spacy.Tok2VecListener.v1",
                "width": 16,
                "upstream": "*",
            },
        },
    }
    config["nlp"]["pipeline"] = ["tok2vec", NAME, "tagger"]
    config["training"]["frozen_components"] = [NAME]
    config["initialize"]["components"]["tagger"] = {"labels": ["A", "B"]}
    second = run(config, tmp_path, "second")
    head = [weights(nlp.get_pipe(NAME).model.get_ref("head")) for nlp in (first, second)]
    assert change(*head) == 0
    assert second.get_pipe(NAME).progress.epoch == first.get_pipe(NAME).progress.epoch
    scores = [nlp.evaluate(make_examples(nlp))["ents_f"] for nlp in (first, second)]
    assert scores[0] == scores[1]


def test_train_run_with_a_transformer(corpus, tmp_path, tiny_bert):
    config = tiny_training(make_config("scl-rai-ns", "trf", lang="xx"), **corpus)
    config["components"]["transformer"]["model"].update(name=str(tiny_bert), mixed_precision=False)
    config["system"]["gpu_allocator"] = None
    nlp = run(config, tmp_path)
    pipe = nlp.get_pipe(NAME)
    assert pipe.head_learn_rate_scale == 10.0
    assert pipe.centroids.counts[1:].tolist() == [3, 2]
    fitted = pipe.fit_centroids(nlp, make_examples(nlp, DATA))
    assert np.allclose(pipe.centroids.means[1:], fitted.means[1:], atol=1e-5)
    assert np.isfinite(nlp.evaluate(make_examples(nlp))["ents_f"])
