import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import spacy
import srsly
from spacy.tokens import Doc
from typer.testing import CliRunner

from spacy_robust_ner.cli import app
from spacy_robust_ner.corpus.io import write_docs
from spacy_robust_ner.experiments.matrix import load_matrix
from spacy_robust_ner.experiments.runner import read_results, run_experiment

ROOT = Path(__file__).parents[2]
SENTENCES = [
    (["Ada", "Lovelace", "lives", "in", "London", "."], ["B-PER", "I-PER", "O", "O", "B-LOC", "O"]),
    (["Nobody", "came", "to", "Paris", "."], ["O", "O", "O", "B-LOC", "O"]),
]


@pytest.fixture
def experiment(tmp_path):
    vocab = spacy.blank("en").vocab
    for name in ("train", "dev"):
        docs = (Doc(vocab, words=words, ents=tags) for words, tags in SENTENCES * 3)
        write_docs(docs, tmp_path / f"{name}.spacy")
    content = {
        "title": "Two sentences",
        "train": [{"name": "clean", "path": str(tmp_path / "train.spacy"), "masked": 0.0}],
        "dev": str(tmp_path / "dev.spacy"),
        "test": str(tmp_path / "dev.spacy"),
        "methods": ["ner", "spancat"],
        "configs": str(ROOT / "configs"),
        "overrides": {"training.max_steps": 30, "training.eval_frequency": 10},
    }
    path = tmp_path / "experiment.yml"
    srsly.write_yaml(path, content)
    return path


def change(path, **fields):
    srsly.write_yaml(path, {**srsly.read_yaml(path), **fields})


def test_experiment_trains_keeps_and_reports(experiment, tmp_path):
    runs = tmp_path / "runs"
    first = run_experiment(load_matrix(experiment), runs, workers=2, show_progress=False)
    assert sorted(first.trained) == ["clean--ner--cnn--0", "clean--spancat--cnn--0"]
    assert not first.failed
    results = {result["method"]: result for result in read_results(runs)}
    assert results["ner"]["test"]["f1"] == 1.0
    assert results["ner"]["test"]["gold"] == 9
    assert results["ner"]["peak_bytes"] > 50 * 2**20
    assert results["spancat"]["test"]["documents"] == 6

    second = run_experiment(load_matrix(experiment), runs, show_progress=False)
    assert sorted(second.kept) == sorted(first.trained)
    assert not second.trained

    change(experiment, overrides={"training.max_steps": 10, "training.eval_frequency": 10})
    change(experiment, methods=["ner"])
    third = run_experiment(load_matrix(experiment), runs, show_progress=False)
    assert third.trained == ["clean--ner--cnn--0"]

    page = CliRunner().invoke(app, ["report", str(experiment), str(runs), str(tmp_path / "out")])
    assert page.exit_code == 0, page.output
    assert "Two sentences" in page.output
    markdown = (tmp_path / "out" / "report.md").read_text(encoding="utf8")
    assert "| spaCy ner |" in markdown
    assert "spaCy spancat" not in markdown
    assert (tmp_path / "out" / "f1_by_masking.png").read_bytes().startswith(b"\x89PNG")
    html = (tmp_path / "out" / "report.html").read_text(encoding="utf8")
    assert "<svg" in html
    assert "src=" not in html


def test_failing_run_is_recorded_and_the_rest_goes_on(experiment, tmp_path):
    broken = tmp_path / "configs" / "baseline"
    broken.mkdir(parents=True)
    source = (ROOT / "configs" / "baseline" / "ner-cnn.cfg").read_text(encoding="utf8")
    (broken / "ner-cnn.cfg").write_text(source, encoding="utf8")
    (broken / "spancat-cnn.cfg").write_text(source.replace("Adam.v1", "Eve.v1"), encoding="utf8")
    change(experiment, configs=str(broken.parent))
    result = CliRunner().invoke(app, ["experiment", str(experiment), str(tmp_path / "runs")])
    assert result.exit_code == 1
    assert "clean--spancat--cnn--0 failed" in result.output
    log = tmp_path / "runs" / "clean--spancat--cnn--0" / "log.txt"
    assert "Eve.v1" in log.read_text(encoding="utf8")
    assert [r["cell"] for r in read_results(tmp_path / "runs")] == ["clean--ner--cnn--0"]
    assert not list((tmp_path / "runs").glob("*.partial"))


def running(text):
    """Processes with some text in their command line."""
    found = subprocess.run(["ps", "-ewwo", "args"], capture_output=True, text=True, check=True)
    return [line for line in found.stdout.splitlines() if text in line and "ps -ewwo" not in line]


def test_terminated_experiment_ends_its_runs(experiment, tmp_path):
    runs = tmp_path / "runs"
    change(experiment, methods=["ner"], overrides={"training.max_steps": 0})
    command = [sys.executable, "-m", "spacy_robust_ner", "experiment", str(experiment), str(runs)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 120
        while not running(f"experiments.cell {runs}") and time.monotonic() < deadline:
            time.sleep(0.2)
        assert running(f"experiments.cell {runs}")
    finally:
        process.terminate()
    assert process.wait(timeout=60) == 128 + signal.SIGTERM
    assert not running(f"experiments.cell {runs}")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"methods": ["nner"]}, "unknown entry 'nner' in methods"),
        ({"encoders": ["gnn"]}, "unknown entry 'gnn' in encoders"),
        ({"colour": "red"}, "unknown field 'colour'"),
        ({"seeds": [0.5]}, "seed 0.5 is not a whole number"),
        ({"train": [{"name": "x"}]}, "should have name, path and masked"),
        ({"methods": "ner"}, "'methods' should be a list"),
    ],
)
def test_bad_experiment_files_are_explained(experiment, fields, message):
    change(experiment, **fields)
    with pytest.raises(ValueError, match=message) as error:
        load_matrix(experiment)
    assert str(experiment) in str(error.value)


def test_missing_files_are_named(experiment, tmp_path):
    with pytest.raises(FileNotFoundError, match="R201"):
        load_matrix(tmp_path / "nothing.yml")
    change(experiment, configs=str(tmp_path / "nowhere"))
    with pytest.raises(FileNotFoundError, match="init-config"):
        run_experiment(load_matrix(experiment), tmp_path / "runs")
    with pytest.raises(FileNotFoundError, match="R204"):
        read_results(tmp_path / "runs")


def test_evaluate_command_prints_and_writes_figures(tmp_path):
    nlp = spacy.blank("en")
    nlp.add_pipe("entity_ruler").add_patterns([{"label": "LOC", "pattern": "Paris"}])
    nlp.to_disk(tmp_path / "model")
    words, tags = SENTENCES[1]
    docs = [
        Doc(nlp.vocab, words=words, ents=tags),
        Doc(nlp.vocab, words=["Rome", "and", "Paris"], ents=["B-LOC", "O", ""]),
    ]
    write_docs(docs, tmp_path / "gold.spacy")
    arguments = ["evaluate", str(tmp_path / "model"), str(tmp_path / "gold.spacy"), "--json"]
    figures = json.loads(CliRunner().invoke(app, arguments).stdout)
    # The Paris of the second document has no annotation, so finding it is no mistake.
    assert (figures["correct"], figures["predicted"], figures["gold"]) == (1, 1, 2)
    assert figures["per_label"]["LOC"]["recall"] == 0.5
