"""Experiments with real training, each cell in a process of its own."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
import spacy
import srsly
from spacy.tokens import Doc
from typer.testing import CliRunner

from spacy_robust_ner.cli import app
from spacy_robust_ner.corpus.io import write_docs
from spacy_robust_ner.experiments.jobs import LOGGED_STEP


def invoke(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in ("experiment", *arguments)])


def test_cells_leave_everything_to_judge_and_repeat_them(experiment, change, tmp_path):
    runs = tmp_path / "runs"
    change(methods=["span-ns"], masking=[{"rate": 0.5, "exact": True}], seeds=[3])
    result = invoke(experiment, runs)
    assert result.exit_code == 0, result.output
    assert "1 runs trained, 0 kept" in result.output
    (line,) = srsly.read_jsonl(runs / "results.jsonl")
    cell = runs / line["cell"]
    assert line["cell"] == "two--entity-0.5-exact--span-ns--cnn--seed3"
    assert {path.name for path in cell.iterdir()} == {
        "config.cfg",
        "history.jsonl",
        "log.txt",
        "model-best",
        "predictions.jsonl",
        "result.json",
    }
    assert line == srsly.read_json(cell / "result.json")
    assert (line["test"]["gold"], line["test"]["documents"]) == (9, 6)
    assert line["peak_bytes"] > 50 * 2**20
    assert line["seconds"] > line["training_seconds"] > 0
    assert (line["device"], line["seed"], line["mask_rate"]) == ("cpu", 3, 0.5)
    # The steps by which a running cell is watched.
    logged = LOGGED_STEP.findall((cell / "log.txt").read_text(encoding="utf8"))
    assert [step for _, step in logged] == ["0", "10", "20", "30"]
    history = list(srsly.read_jsonl(cell / "history.jsonl"))
    assert [evaluation["step"] for evaluation in history] == [0, 10, 20, 30]
    best = max(evaluation["score"] for evaluation in history)
    assert line["dev_f1"] == pytest.approx(best)

    records = list(srsly.read_jsonl(cell / "predictions.jsonl"))
    assert [record["split"] for record in records] == ["test"] * 6 + ["train"] * 6
    masked = [entity for record in records for entity in record["masked"]]
    # Half of nine.
    assert line["recovery"]["masked"] == len(masked) in (4, 5)
    assert line["recovery"]["recovered"] == sum(
        entity in [found[:3] for found in record["predicted"]]
        for record in records
        for entity in record["masked"]
    )

    assert "0 runs trained, 1 kept" in invoke(experiment, runs).output
    listing = invoke(experiment, runs, "--dry-run").output
    assert "1 runs, 1 finished, 0 to do" in listing


@pytest.mark.slow
def test_config_of_a_cell_trains_the_same_pipeline_again(experiment, change, tmp_path):
    change(methods=["span-ns"], seeds=[3])
    assert invoke(experiment, tmp_path / "runs").exit_code == 0
    cell = tmp_path / "runs" / "two--given--span-ns--cnn--seed3"
    command = ["train", str(cell / "config.cfg"), "--output", str(tmp_path / "again")]
    done = subprocess.run([sys.executable, "-m", "spacy", *command], capture_output=True)
    assert done.returncode == 0, done.stderr
    found = []
    for path in (cell / "model-best", tmp_path / "again" / "model-best"):
        nlp = spacy.load(path)
        doc = nlp(Doc(nlp.vocab, words=["Ada", "Lovelace", "lives", "in", "London"]))
        found.append([(e.text, e.label_, round(e._.entity_score, 5)) for e in doc.ents])
    assert found[0] == found[1]


def test_failing_cell_leaves_its_log_and_the_rest_goes_on(experiment, change, tmp_path):
    runs = tmp_path / "runs"
    broken = {"@optimizers": "Eve.v1"}
    change(
        methods=["ner", {"method": "spancat", "overrides": {"training.optimizer": broken}}],
        keep_models=False,
    )
    result = invoke(experiment, runs, "--workers", 2)
    assert result.exit_code == 1
    assert "1 runs trained" in result.output
    assert "two--given--spancat--cnn--seed0 failed" in result.output
    (failure,) = srsly.read_jsonl(runs / "failures.jsonl")
    assert "Eve.v1" in (runs / failure["cell"] / "log.txt").read_text(encoding="utf8")
    assert failure["returncode"] != 0
    (line,) = srsly.read_jsonl(runs / "results.jsonl")
    assert (line["method"], line["test"]["f1"]) == ("ner", 1.0)
    assert line["recovery"] is None
    assert not (runs / line["cell"] / "model-best").exists()
    assert not list(runs.glob(".*.partial"))


def running(text):
    """Processes with some text in their command line."""
    found = subprocess.run(["ps", "-ewwo", "args"], capture_output=True, text=True, check=True)
    return [line for line in found.stdout.splitlines() if text in line and "ps -ewwo" not in line]


def wait_for(condition, seconds=120):
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.2)
    assert condition()


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_ended_experiment_leaves_no_runs_and_no_results(experiment, change, tmp_path, how):
    runs = tmp_path / "runs"
    change(methods=["ner"], overrides={"training.max_steps": 0})
    command = [sys.executable, "-m", "spacy_robust_ner", "experiment", str(experiment), str(runs)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    cell = f"experiments.cell {runs}"
    try:
        wait_for(lambda: running(cell))
    finally:
        os.kill(process.pid, how)
    expected = 128 + signal.SIGTERM if how == signal.SIGTERM else -signal.SIGKILL
    assert process.wait(timeout=60) == expected
    wait_for(lambda: not running(cell), seconds=30)
    assert not list(runs.glob("two--*"))
    assert not list(srsly.read_jsonl(runs / "results.jsonl"))
    if how == signal.SIGTERM:
        assert not list(runs.glob(".*.partial"))


def test_evaluate_command_prints_and_writes_figures(tmp_path):
    nlp = spacy.blank("en")
    nlp.add_pipe("entity_ruler").add_patterns([{"label": "LOC", "pattern": "Paris"}])
    nlp.to_disk(tmp_path / "model")
    docs = [
        Doc(nlp.vocab, words=["to", "Paris", "."], ents=["O", "B-LOC", "O"]),
        Doc(nlp.vocab, words=["Rome", "and", "Paris"], ents=["B-LOC", "O", ""]),
    ]
    write_docs(docs, tmp_path / "gold.spacy")
    arguments = ["evaluate", str(tmp_path / "model"), str(tmp_path / "gold.spacy"), "--json"]
    figures = json.loads(CliRunner().invoke(app, arguments).stdout)
    # The Paris of the second document has no annotation, so finding it is no mistake.
    assert (figures["correct"], figures["predicted"], figures["gold"]) == (1, 1, 2)
    assert figures["per_label"]["LOC"]["recall"] == 0.5
