"""A cell's process: started in a staging directory, published as a whole or not at all."""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any, Protocol

import srsly

from .cell import CONFIG_FILE, RESULT_FILE, SETTINGS_FILE

FAILURE_FILE = "failure.json"
LOG_FILE = "log.txt"
STAGING_SUFFIX = ".partial"
_GRACE_SECONDS = 10
_POLL_SECONDS = 0.5
_LOG_TAIL = 20
# A row of the table that `spacy train` prints: epoch and step, then losses and scores.
LOGGED_STEP = re.compile(r"^ *(\d+) +(\d+) +-?\d", re.MULTILINE)


class Stopped(Exception):
    """The experiment was stopped while a cell was waiting or running."""


class StopSignal(Protocol):
    """Says whether running cells shall end."""

    def is_set(self) -> bool:
        """RETURNS (bool): Whether they shall."""
        ...


@dataclass(frozen=True)
class Job:
    """What it takes to run a cell, on this machine or on another one.

    name (str): The cell's name.
    output (Path): The directory of the experiment, as an absolute path.
    config (str): The text of the config.
    settings (Dict[str, Any]): What the process reads.
    home (Path): The directory that relative paths in the config and the settings start from.
    """

    name: str
    output: Path
    config: str
    settings: dict[str, Any]
    home: Path

    @property
    def directory(self) -> Path:
        """RETURNS (Path): Where the finished cell goes."""
        return self.output / self.name

    @property
    def staging(self) -> Path:
        """RETURNS (Path): Where the cell is while it runs."""
        return self.output / f".{self.name}{STAGING_SUFFIX}"

    def share_done(self) -> float | None:
        """RETURNS (Optional[float]): How much of its training the cell has behind it, by its last
        evaluation; None if it does not run.
        """
        log = self.staging / LOG_FILE
        try:
            rows = LOGGED_STEP.findall(log.read_text(encoding="utf8", errors="replace"))
        except FileNotFoundError:
            return None
        if not rows:
            return 0.0
        # Whichever comes first ends training; 0 and -1 are no limits.
        limits = (self.settings["max_epochs"], self.settings["max_steps"])
        shares = [int(n) / limit for n, limit in zip(rows[-1], limits, strict=True) if limit > 0]
        return min(1.0, max(shares, default=0.0))


@dataclass(frozen=True)
class Resources:
    """What a cell may use.

    threads (int): CPU threads.
    environment (Dict[str, str]): Environment variables, such as the visible GPU.
    """

    threads: int
    environment: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """How a cell ended.

    finished (bool): Whether there is a result.
    seconds (float): How long it took.
    """

    finished: bool
    seconds: float


def run_job(job: Job, resources: Resources, stop: StopSignal | None = None) -> Outcome:
    """Run a cell in a process of its own. Its directory appears when it has ended, with a result
    or with the record of a failure; if this function is interrupted, not at all.

    job (Job): The cell.
    resources (Resources): What it may use.
    stop (Optional[StopSignal]): Ends the process when it is set.
    RETURNS (Outcome): How it ended.
    """
    started = perf_counter()
    if stop is not None and stop.is_set():
        raise Stopped
    staging = job.staging
    for stale in (job.directory, staging):
        shutil.rmtree(stale, ignore_errors=True)
    staging.mkdir(parents=True)
    try:
        (staging / CONFIG_FILE).write_text(job.config, encoding="utf8")
        srsly.write_json(staging / SETTINGS_FILE, job.settings)
        returncode = _run_process(staging, job.home, resources, stop)
        outcome = Outcome((staging / RESULT_FILE).is_file(), perf_counter() - started)
        if not outcome.finished:
            _record_failure(job, staging, returncode, outcome.seconds)
        staging.replace(job.directory)
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        raise
    return outcome


def refuse_job(job: Job, reason: str) -> Outcome:
    """Record that a cell can't run.

    job (Job): The cell.
    reason (str): Why not.
    RETURNS (Outcome): A failure.
    """
    shutil.rmtree(job.directory, ignore_errors=True)
    job.directory.mkdir(parents=True)
    (job.directory / LOG_FILE).write_text(reason + "\n", encoding="utf8")
    _record_failure(job, job.directory, 1, 0.0)
    return Outcome(False, 0.0)


def _run_process(staging: Path, home: Path, resources: Resources, stop: StopSignal | None) -> int:
    module = "spacy_robust_ner.experiments.cell"
    command = [sys.executable, "-m", module, str(staging), str(os.getpid())]
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": str(resources.threads),
        **resources.environment,
    }
    with (staging / LOG_FILE).open("ab") as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=home,
            env=environment,
        )
        try:
            while True:
                try:
                    return process.wait(_POLL_SECONDS)
                except subprocess.TimeoutExpired:
                    if stop is not None and stop.is_set():
                        raise Stopped from None
        except BaseException:
            _end(process)
            raise


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    try:
        process.wait(_GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _record_failure(job: Job, staging: Path, returncode: int, seconds: float) -> None:
    log = (staging / LOG_FILE).read_text(encoding="utf8", errors="replace")
    failure = {
        **job.settings["result"],
        "returncode": returncode,
        "seconds": seconds,
        "log": str(job.directory / LOG_FILE),
        "log_tail": log.splitlines()[-_LOG_TAIL:],
        "fingerprint": job.settings["fingerprint"],
    }
    srsly.write_json(staging / FAILURE_FILE, failure)
