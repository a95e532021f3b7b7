"""spaCy's own commands on pipelines with the span component."""

import json

import pytest
import spacy
from spacy.cli._util import app
from spacy.cli.evaluate import evaluate
from spacy.cli.find_threshold import find_threshold
from spacy.cli.package import package
from span_pipes import (
    NAME,
    TRAIN_DATA,
    assert_same_ents,
    make_examples,
    make_shared_nlp,
    save_corpus,
    tiny_training,
    train,
)
from typer.testing import CliRunner

from spacy_robust_ner.recipes import make_config

TEXTS = [text for text, _ in TRAIN_DATA]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A directory with a corpus, a config and a trained pipeline."""
    path = tmp_path_factory.mktemp("commands")
    nlp = make_shared_nlp()
    train(nlp, make_examples(nlp), steps=40)
    nlp.to_disk(path / "model")
    save_corpus(nlp, path / "corpus.spacy")
    paths = {"train_path": path / "corpus.spacy", "dev_path": path / "corpus.spacy"}
    tiny_training(make_config("scl-rai", "cnn", lang="xx"), **paths).to_disk(path / "config.cfg")
    return path


def invoke(*arguments):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result.output


def test_debug_config(place):
    output = invoke("debug", "config", place / "config.cfg", "-F", "-V")
    assert "spacy_robust_ner.SpanModel.v1" in output


def test_debug_data(place, tmp_path):
    # Fewer than a hundred documents are an error to this command.
    path = save_corpus(spacy.blank("xx"), tmp_path / "many.spacy", TRAIN_DATA * 60)
    output = invoke("debug", "data", place / "config.cfg", "--paths.train", path)
    assert "120 training docs" in output
    assert NAME in output


def test_debug_config_names_a_wrong_setting(place, tmp_path):
    text = (place / "config.cfg").read_text(encoding="utf8")
    path = tmp_path / "wrong.cfg"
    path.write_text(text.replace("max_width = 10", 'max_width = "ten"'), encoding="utf8")
    result = CliRunner().invoke(app, ["debug", "config", str(path)])
    assert result.exit_code != 0
    assert "max_width" in result.output


def test_init_labels(place, tmp_path):
    invoke("init", "labels", place / "config.cfg", tmp_path / "labels")
    path = tmp_path / "labels" / f"{NAME}.json"
    assert json.loads(path.read_text(encoding="utf8")) == ["LOC", "PER"]


def test_evaluate(place):
    scores = evaluate(str(place / "model"), place / "corpus.spacy", silent=True)
    assert scores["ents_f"] == 1.0
    assert scores["ents_per_type"]["LOC"]["f"] == 1.0


def test_find_threshold(place):
    best, score, tried = find_threshold(
        str(place / "model"), place / "corpus.spacy", NAME, "threshold", "ents_f", n_trials=5
    )
    assert score == max(tried.values()) == 1.0
    assert 0 < best < 1
    assert tried[0.0] < 1.0, "every span is an entity"
    assert tried[1.0] == 0.0, "none is"


def test_benchmark_speed(place):
    output = invoke(
        "benchmark", "speed", place / "model", place / "corpus.spacy", "-b", "3", "--warmup", "1"
    )
    assert "words/s" in output


def test_packaged_pipeline_loads_and_states_what_it_needs(place, tmp_path):
    package(
        place / "model",
        tmp_path,
        name="tiny",
        version="1.2.3",
        create_wheel=False,
        create_sdist=False,
        silent=True,
    )
    (data,) = tmp_path.glob("xx_tiny-1.2.3/xx_tiny/xx_tiny-1.2.3")
    expected = list(spacy.load(place / "model").pipe(TEXTS))
    assert sum(len(doc.ents) for doc in expected) == 3
    assert_same_ents(list(spacy.load(data).pipe(TEXTS)), expected, tolerance=0)
    meta = json.loads((data.parents[1] / "meta.json").read_text(encoding="utf8"))
    assert any(need.startswith("spacy-robust-ner") for need in meta["requirements"])
