"""Train and evaluate every cell of an experiment that has no valid result yet."""

import shutil
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import srsly

from ..errors import Errors, Warnings
from .cell import MODEL, RESULT_FILE
from .executors import Executor, LocalExecutor
from .jobs import FAILURE_FILE, LOG_FILE, STAGING_SUFFIX, Job, Outcome, refuse_job
from .matrix import Matrix
from .plan import Plan, make_plans
from .progress import Progress
from .results import valid_result, write_failures, write_results

Result = dict[str, Any]
State = Literal["finished", "outdated", "failed", "to do"]
_WAIT_SECONDS = 2.0


@dataclass
class RunSummary:
    """What became of the cells of an experiment.

    trained (List[str]): Cells that ran now.
    kept (List[str]): Cells whose earlier result still holds.
    failed (Dict[str, Path]): Cells that ended with an error, and their logs.
    """

    trained: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    failed: dict[str, Path] = field(default_factory=dict)


def run_experiment(
    matrix: Matrix,
    output: Path,
    *,
    executor: Executor | None = None,
    force: bool = False,
    on_start: Callable[[RunSummary, Progress], None] | None = None,
    on_wait: Callable[[Progress], None] | None = None,
    on_end: Callable[[str, Result | None, Progress], None] | None = None,
) -> RunSummary:
    """Run all cells that have no valid result yet. A failing cell does not stop the others, and a
    cell that was interrupted leaves nothing behind.

    matrix (Matrix): The experiment.
    output (Path): A directory that gets one directory a cell, the masked corpora and the tables
        of results and failures.
    executor (Optional[Executor]): Where cells run; by default one at a time on the CPU.
    force (bool): Run also what has a valid result.
    on_start (Optional[Callable]): Hears what was kept and what there is to do.
    on_wait (Optional[Callable]): Hears every few seconds how far the running cells are.
    on_end (Optional[Callable]): Sees each cell as it ends, with its result or None.
    RETURNS (RunSummary): What ran, was kept, and failed.
    """
    output.mkdir(parents=True, exist_ok=True)
    executor = executor or LocalExecutor()
    try:
        with only_run_in(output):
            # Of a run that was killed.
            for left_over in output.glob(f".*{STAGING_SUFFIX}"):
                shutil.rmtree(left_over)
            plans = make_plans(matrix, output, gpu=executor.gpu)
            kept = {} if force else kept_results(plans, output)
            write_results(output, kept.values())
            write_failures(output, [])
            run = _Run(plans, output, executor, kept)
            if on_start is not None:
                on_start(run.summary, run.progress)
            run.run(on_wait, on_end)
            if not matrix.keep_models:
                run.drop_first_stages()
            return run.summary
    finally:
        executor.stop()


def find_states(matrix: Matrix, output: Path, *, gpu: bool = False) -> dict[str, State]:
    """Say how far an experiment is, without changing anything.

    matrix (Matrix): The experiment.
    output (Path): Its directory.
    gpu (bool): Whether the question is about runs on GPUs.
    RETURNS (Dict[str, State]): The state of each cell.
    """
    plans = make_plans(matrix, output, gpu=gpu, prepare=False)
    kept = kept_results(plans, output)

    def state(name: str) -> State:
        if name in kept:
            return "finished"
        if (output / name / RESULT_FILE).is_file():
            return "outdated"
        return "failed" if (output / name / FAILURE_FILE).is_file() else "to do"

    return {name: state(name) for name in plans}


def kept_results(plans: Mapping[str, Plan], output: Path) -> dict[str, Result]:
    """RETURNS (Dict[str, Result]): The cells that need not run again."""
    found = {
        name: result
        for name, plan in plans.items()
        if (result := valid_result(output, name, plan.fingerprint)) is not None
    }
    needed = {plan.cell.first_stage for name, plan in plans.items() if name not in found}
    return {
        name: result
        for name, result in found.items()
        if name not in needed or (output / name / MODEL).is_dir()
    }


class _Run:
    """The cells of an experiment on their way through an executor."""

    def __init__(
        self,
        plans: Mapping[str, Plan],
        output: Path,
        executor: Executor,
        kept: Mapping[str, Result],
    ) -> None:
        self.output = output
        self.executor = executor
        self.order = list(plans)
        self.results = dict(kept)
        self.summary = RunSummary(kept=list(kept))
        self.todo = {
            name: Job(name, output.absolute(), plan.config, plan.settings, Path.cwd())
            for name, plan in plans.items()
            if name not in kept
        }
        cells = [plans[name].cell for name in self.todo]
        self.progress = Progress(cells, executor.slots)
        self.first_stages = {name: plan.cell.first_stage for name, plan in plans.items()}

    def run(
        self,
        on_wait: Callable[[Progress], None] | None,
        on_end: Callable[[str, Result | None, Progress], None] | None,
    ) -> None:
        """Run the cells that are left; see run_experiment."""
        self._submit(after=None)
        while self.progress.done < self.progress.total:
            ended = self.executor.next_finished(None if on_wait is None else _WAIT_SECONDS)
            if ended is not None:
                self._end(*ended, on_end)
            elif on_wait is not None:
                self._watch()
                on_wait(self.progress)

    def drop_first_stages(self) -> None:
        """Remove pipelines that were kept only for cells which have finished by now."""
        waiting = {stage for name, stage in self.first_stages.items() if name not in self.results}
        for stage in {*self.first_stages.values()} - waiting - {None}:
            shutil.rmtree(self.output / str(stage) / MODEL, ignore_errors=True)

    def _watch(self) -> None:
        shares = {name: job.share_done() for name, job in self.todo.items()}
        self.progress.watch({name: share for name, share in shares.items() if share is not None})

    def _submit(self, *, after: str | None) -> None:
        """Submit the cells whose first stage has just ended, or which have none to wait for."""
        for name, job in self.todo.items():
            stage = self.first_stages[name]
            if (stage if stage in self.todo else None) == after:
                self.executor.submit(job)

    def _end(
        self,
        job: Job,
        outcome: Outcome,
        on_end: Callable[[str, Result | None, Progress], None] | None,
    ) -> None:
        self.progress.end(job.name, outcome.seconds, finished=outcome.finished)
        result: Result | None = None
        if outcome.finished:
            result = srsly.read_json(job.directory / RESULT_FILE)
            self.results[job.name] = result
            self.summary.trained.append(job.name)
            # In the order of the experiment, whichever came first.
            self.summary.trained.sort(key=self.order.index)
            write_results(self.output, (self.results[n] for n in self.order if n in self.results))
        else:
            self.summary.failed[job.name] = job.directory / LOG_FILE
        write_failures(self.output, self.summary.failed)
        if on_end is not None:
            on_end(job.name, result, self.progress)
        if outcome.finished:
            self._submit(after=job.name)
            return
        for name in [n for n in self.todo if self.first_stages[n] == job.name]:
            reason = f"Not run, because its first stage failed: {job.name}"
            self._end(self.todo[name], refuse_job(self.todo[name], reason), on_end)


@contextmanager
def only_run_in(output: Path) -> Iterator[None]:
    """Keep other runs out of a directory; a run that is killed does not, either.

    output (Path): The directory.
    """
    if find_spec("fcntl") is None:
        yield
        return
    import fcntl

    with (output / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ValueError(Errors.R208.format(path=output)) from error
        except OSError as error:
            # Some network filesystems have no locks.
            warnings.warn(Warnings.W200.format(path=output, reason=error), stacklevel=2)
        yield
