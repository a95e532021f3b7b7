"""What the runner does with cells that end as the test wants, without training."""

import fcntl
import shutil
import time

import pytest
import spacy
import srsly
from spacy.tokens import Doc

from spacy_robust_ner.corpus.io import write_docs
from spacy_robust_ner.experiments import runner
from spacy_robust_ner.experiments.executors import LocalExecutor
from spacy_robust_ner.experiments.jobs import Outcome, refuse_job
from spacy_robust_ner.experiments.matrix_file import load_matrix
from spacy_robust_ner.experiments.runner import find_states, run_experiment


class Pretender:
    """Writes results without any work; cells with a word in their name fail."""

    def __init__(self, failing="nothing"):
        self.failing = failing
        self.ran = []

    def __call__(self, job, resources, stop):
        self.ran.append(job.name)
        if self.failing in job.name:
            return refuse_job(job, "It was not my day.")
        (job.directory / "model-best").mkdir(parents=True, exist_ok=True)
        result = {**job.settings["result"], "fingerprint": job.settings["fingerprint"]}
        srsly.write_json(job.directory / "result.json", result)
        return Outcome(True, 1.0)


def run(experiment, output, pretender=None, **options):
    executor = LocalExecutor(run=pretender or Pretender())
    return run_experiment(load_matrix(experiment), output, executor=executor, **options)


def cells_in(path):
    return [line["cell"] for line in srsly.read_jsonl(path)]


NER, SPANCAT = "two--given--ner--cnn--seed0", "two--given--spancat--cnn--seed0"


def test_finished_cells_are_kept(experiment, tmp_path):
    runs = tmp_path / "runs"
    assert run(experiment, runs).trained == [NER, SPANCAT]
    again = run(experiment, runs)
    assert (again.trained, again.kept) == ([], [NER, SPANCAT])
    assert run(experiment, runs, force=True).trained == [NER, SPANCAT]
    assert cells_in(runs / "results.jsonl") == [NER, SPANCAT]


def test_changes_repeat_what_they_change(experiment, change, tmp_path):
    runs = tmp_path / "runs"
    run(experiment, runs)
    spancat = {"method": "spancat", "overrides": {"training.dropout": 0.3}}
    change(methods=["ner", spancat])
    assert run(experiment, runs).trained == [SPANCAT]
    change(methods=["ner", spancat, {"method": "ner", "name": "again"}])
    assert run(experiment, runs).trained == [NER.replace("ner", "again")]
    change(methods=[spancat])
    assert run(experiment, runs).kept == [SPANCAT]
    assert cells_in(runs / "results.jsonl") == [SPANCAT]

    train = srsly.read_yaml(experiment)["datasets"][0]["train"]
    doc = Doc(spacy.blank("en").vocab, words=["Rome"], ents=["B-LOC"])
    write_docs([doc], tmp_path / "other.spacy")
    (tmp_path / "other.spacy").replace(train)
    assert run(experiment, runs).trained == [SPANCAT]


def test_failures_are_recorded_and_tried_again(experiment, tmp_path):
    runs = tmp_path / "runs"
    summary = run(experiment, runs, Pretender(failing="ner"))
    assert summary.trained == [SPANCAT]
    assert summary.failed == {NER: runs.absolute() / NER / "log.txt"}
    (failure,) = srsly.read_jsonl(runs / "failures.jsonl")
    assert failure["cell"] == NER
    assert failure["log_tail"] == ["It was not my day."]
    assert find_states(load_matrix(experiment), runs) == {NER: "failed", SPANCAT: "finished"}
    again = run(experiment, runs)
    assert (again.trained, again.kept) == ([NER], [SPANCAT])
    assert not (runs / "failures.jsonl").exists()


def test_states_are_found_without_a_trace(experiment, change, tmp_path):
    runs = tmp_path / "runs"
    change(masking=[0, 0.5])
    masked = NER.replace("given", "entity-0.5")
    states = find_states(load_matrix(experiment), runs)
    assert set(states.values()) == {"to do"}
    assert not runs.exists()
    run(experiment, runs)
    assert find_states(load_matrix(experiment), runs)[masked] == "finished"
    change(overrides={"training.max_steps": 7})
    assert find_states(load_matrix(experiment), runs)[masked] == "outdated"


def test_first_stages_come_first(experiment, change, tmp_path):
    change(methods=[{"method": "conf-mpu", "first_stage": "span-ns"}, "span-ns"])
    stage, second = NER.replace("ner", "span-ns"), NER.replace("ner", "conf-mpu")
    pretender = Pretender()
    run(experiment, tmp_path / "runs", pretender)
    assert pretender.ran == [stage, second]
    assert cells_in(tmp_path / "runs" / "results.jsonl") == [second, stage]

    failing = Pretender(failing="span-ns")
    summary = run(experiment, tmp_path / "failing", failing)
    assert failing.ran == [stage]
    assert list(summary.failed) == [stage, second]
    assert stage in summary.failed[second].read_text(encoding="utf8")


def test_first_stages_keep_their_pipelines_as_long_as_needed(experiment, change, tmp_path):
    runs = tmp_path / "runs"
    change(methods=["span-ns", {"method": "conf-mpu", "first_stage": "span-ns"}], keep_models=False)
    stage, second = NER.replace("ner", "span-ns"), NER.replace("ner", "conf-mpu")
    assert list(run(experiment, runs, Pretender(failing="conf-mpu")).failed) == [second]
    assert (runs / stage / "model-best").is_dir()
    assert run(experiment, runs).trained == [second]
    assert not (runs / stage / "model-best").exists()
    assert run(experiment, runs).kept == [stage, second]
    # What needs the pipeline again has to wait for it.
    (runs / second / "result.json").unlink()
    assert run(experiment, runs).trained == [stage, second]


def test_first_stage_reaches_the_config(experiment, change, tmp_path):
    change(methods=["span-ns", {"method": "conf-mpu", "first_stage": "span-ns"}])
    seen = {}

    def remember(job, resources, stop):
        seen[job.name] = job
        return Pretender()(job, resources, stop)

    run(experiment, tmp_path / "runs", remember)
    stage, second = seen
    assert f"{tmp_path / 'runs' / stage / 'model-best'}" in seen[second].config
    assert "first_stage" in seen[second].settings["fingerprint"]


def test_everything_is_checked_before_the_first_cell(experiment, change, tmp_path):
    pretender = Pretender()
    change(overrides={"components.ner.model.hidden_width": 8})
    with pytest.raises(ValueError, match=r"R207.*spancat"):
        run(experiment, tmp_path / "runs", pretender)
    data = srsly.read_yaml(experiment)["datasets"]
    change(overrides={}, datasets=[*data, {**data[0], "name": "b", "dev": "nowhere.spacy"}])
    with pytest.raises(FileNotFoundError, match="nowhere"):
        run(experiment, tmp_path / "runs", pretender)
    assert not pretender.ran


def test_two_runs_do_not_share_a_directory(experiment, tmp_path):
    runs = tmp_path / "runs"
    runs.mkdir()
    with (runs / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(ValueError, match="R208"):
            run(experiment, runs)
    run(experiment, runs)


@pytest.mark.parametrize(
    ("limits", "share"),
    [((40, 0), 0.25), ((40, 2), 0.5), ((0, 10), 0.1), ((0, -1), 0.0), ((5, 0), 1.0)],
)
def test_running_cells_are_watched(experiment, change, tmp_path, monkeypatch, limits, share):
    monkeypatch.setattr(runner, "_WAIT_SECONDS", 0.01)
    steps, epochs = limits
    settings = {"training.max_steps": steps, "training.max_epochs": epochs}
    change(methods=["ner"], overrides=settings)
    heard = []
    table = "E    #       LOSS NER  ENTS_F  SCORE \n---  ------  --------  ------  ------\n"
    logs = ["starting", table, table + "  0       0     12.50    0.00    0.00\n"]
    logs.append(logs[-1] + "  1      10      3.50   50.00    0.50\n[2026-11-18] 7 warnings\n")

    def logging(job, resources, stop):
        job.staging.mkdir(parents=True)
        for log in logs:
            (job.staging / "log.txt").write_text(log, encoding="utf8")
            before = len(heard)
            while len(heard) < before + 2:
                time.sleep(0.01)
        shutil.rmtree(job.staging)
        return Pretender()(job, resources, stop)

    def listen(progress):
        assert (progress.done, progress.total) == (0, 1)
        heard.append(progress.running)

    assert run(experiment, tmp_path / "runs", logging, on_wait=listen).trained == [NER]
    seen = [shares for shares in heard if shares]
    assert seen[0] == [0.0]
    assert seen[-1] == [share]
    assert seen == sorted(seen)


def test_left_overs_of_a_killed_run_go_away(experiment, tmp_path):
    left_over = tmp_path / "runs" / f".{NER}.partial"
    left_over.mkdir(parents=True)
    run(experiment, tmp_path / "runs")
    assert not left_over.exists()
