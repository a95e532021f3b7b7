import io
import threading
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from spacy_robust_ner.cli import app
from spacy_robust_ner.cli.experiment import StatusLine, parse_gpu_ids
from spacy_robust_ner.experiments.executors import LocalExecutor, available_cores, visible_gpu
from spacy_robust_ner.experiments.jobs import Job, Outcome
from spacy_robust_ner.experiments.progress import Progress


def job(name):
    return Job(name, Path("/nowhere"), "", {}, Path("/nowhere"))


class Recorder:
    """Runs nothing, and notes what ran where and beside what."""

    def __init__(self):
        self.lock = threading.Lock()
        self.now = []
        self.beside = []
        self.resources = {}

    def __call__(self, job, resources, stop):
        gpu = resources.environment.get("CUDA_VISIBLE_DEVICES")
        with self.lock:
            self.now.append(gpu)
            self.beside.append(sorted(self.now, key=str))
            self.resources[job.name] = resources
        time.sleep(0.02)
        with self.lock:
            self.now.remove(gpu)
        return Outcome(True, 0.02)


def run_all(executor, count):
    for i in range(count):
        executor.submit(job(f"cell{i}"))
    found = [executor.next_finished()[0].name for _ in range(count)]
    executor.stop()
    return found


def test_each_gpu_has_one_cell_at_a_time(monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    recorder = Recorder()
    executor = LocalExecutor(gpu_ids=[0, 3], workers=8, run=recorder)
    assert executor.gpu
    assert executor.slots == 2
    assert sorted(run_all(executor, 20)) == sorted(f"cell{i}" for i in range(20))
    assert all(len(set(gpus)) == len(gpus) for gpus in recorder.beside)
    assert ["0", "3"] in recorder.beside
    used = {r.environment["CUDA_VISIBLE_DEVICES"] for r in recorder.resources.values()}
    assert used == {"0", "3"}


def test_workers_share_the_cores():
    recorder = Recorder()
    executor = LocalExecutor(workers=2, run=recorder)
    run_all(executor, 8)
    assert not executor.gpu
    assert max(map(len, recorder.beside)) == 2
    threads = {resources.threads for resources in recorder.resources.values()}
    assert threads == {max(1, available_cores() // 2)}
    assert LocalExecutor(workers=2, threads=5, run=recorder)._free.get().threads == 5


def test_gpus_are_counted_among_the_visible_ones(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,6")
    assert visible_gpu(1) == {"CUDA_VISIBLE_DEVICES": "6"}
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    assert visible_gpu(1) == {"CUDA_VISIBLE_DEVICES": "1"}


def test_stopping_starts_nothing_more():
    started = []

    def run(job, resources, stop):
        started.append(job.name)
        while not stop.is_set():
            time.sleep(0.01)
        return Outcome(False, 0.0)

    executor = LocalExecutor(workers=1, run=run)
    for i in range(5):
        executor.submit(job(f"cell{i}"))
    while not started:
        time.sleep(0.01)
    executor.stop()
    assert started == ["cell0"]


def test_waiting_ends_after_a_while():
    done = threading.Event()

    def run(job, resources, stop):
        done.wait(30)
        return Outcome(True, 1.0)

    executor = LocalExecutor(run=run)
    executor.submit(job("cell"))
    assert executor.next_finished(timeout=0.05) is None
    done.set()
    assert executor.next_finished(timeout=30) == (job("cell"), Outcome(True, 1.0))
    executor.stop()


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_status_line_is_for_terminals():
    progress = Progress([], 1)
    progress.watch({"a": 0.4, "b": 0.0})
    for stream, seen in (
        (Terminal(), "\r\x1b[2K0/0 done  running: 40%, 0%\r\x1b[2K"),
        (io.StringIO(), ""),
    ):
        status = StatusLine(stream)
        status.show(progress)
        status.clear()
        assert stream.getvalue() == seen


@pytest.mark.parametrize(("value", "gpus"), [("-1", []), ("0", [0]), ("0,2", [0, 2])])
def test_gpu_option(value, gpus):
    assert parse_gpu_ids(value) == gpus


@pytest.mark.parametrize("value", ["a", "0,0", "0,-1", ""])
def test_bad_gpu_option(experiment, tmp_path, value):
    arguments = ["experiment", str(experiment), str(tmp_path / "runs"), "--gpu-ids", value]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 1
    assert "R209" in result.output
