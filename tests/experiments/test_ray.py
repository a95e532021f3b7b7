"""Experiments on a Ray cluster of this machine; skipped where ray is not installed."""

import importlib.util
import signal
import subprocess
import sys
import time

import pytest
import srsly
import torch
from typer.testing import CliRunner

from spacy_robust_ner.cli import app

HAS_RAY = importlib.util.find_spec("ray") is not None
needs_ray = pytest.mark.skipif(not HAS_RAY, reason="needs the extra 'ray'")


def command(experiment, runs):
    return [
        *(sys.executable, "-m", "spacy_robust_ner", "experiment"),
        *(str(experiment), str(runs), "--ray", "local"),
    ]


@needs_ray
@pytest.mark.slow
def test_cells_run_and_are_kept(experiment, change, tmp_path):
    runs = tmp_path / "runs"
    broken = {"method": "spancat", "overrides": {"training.optimizer": {"@optimizers": "Eve.v1"}}}
    change(methods=["ner", broken])
    done = subprocess.run(command(experiment, runs), capture_output=True, text=True)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "1 runs trained, 0 kept" in done.stdout
    (line,) = srsly.read_jsonl(runs / "results.jsonl")
    assert (line["method"], line["test"]["f1"], line["threads"]) == ("ner", 1.0, 1)
    (failure,) = srsly.read_jsonl(runs / "failures.jsonl")
    assert "Eve.v1" in "".join(failure["log_tail"])

    change(methods=["ner"])
    done = subprocess.run(command(experiment, runs), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 runs trained, 1 kept" in done.stdout


@needs_ray
@pytest.mark.slow
def test_ended_experiment_leaves_nothing(experiment, change, tmp_path):
    runs = tmp_path / "runs"
    change(methods=["ner"], overrides={"training.max_steps": 0})
    process = subprocess.Popen(command(experiment, runs), stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 180
    while not list(runs.glob(".*.partial/log.txt")) and time.monotonic() < deadline:
        time.sleep(0.5)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=90) != 0
    assert not list(runs.glob("*--*"))
    assert not list(runs.glob(".*.partial"))
    assert not list(runs.glob(".stop*"))


@needs_ray
@pytest.mark.slow
@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_cluster_without_gpus(experiment, tmp_path):
    arguments = [*command(experiment, tmp_path / "runs"), "--gpu-ids", "0"]
    done = subprocess.run(arguments, capture_output=True, text=True)
    assert done.returncode == 1
    assert "R211" in done.stdout + done.stderr


def test_without_ray_the_extra_is_named(experiment, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)  # as if it were not installed
    arguments = ["experiment", str(experiment), str(tmp_path / "runs"), "--ray", "auto"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 1
    assert "[ray]" in result.output
