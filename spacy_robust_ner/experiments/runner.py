"""Train and evaluate every cell of an experiment, each in processes of its own."""

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import srsly
from tqdm import tqdm

from ..errors import Errors
from .cell import METRICS_FILE, SETTINGS_FILE
from .fingerprint import fingerprint
from .matrix import Cell, Matrix

RESULT_FILE = "result.json"
LOG_FILE = "log.txt"


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


class _CellFailed(Exception):
    """A process of a cell ended with an error; its log says which."""


class _Processes:
    """The running processes, so that an interrupted experiment leaves none behind."""

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()
        self._stopped = False

    def run(self, command: list[str], log: Path, threads: int) -> int | None:
        """Run a command to its end, its output appended to a log.

        RETURNS (Optional[int]): Its peak memory in bytes, where the system tells.
        """
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
        with log.open("ab") as output:
            with self._lock:
                if self._stopped:
                    raise _CellFailed
                process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    env=environment,
                )
                self._running.add(process)
            try:
                peak = _wait(process)
            finally:
                with self._lock:
                    self._running.discard(process)
        if process.returncode != 0:
            raise _CellFailed
        return peak

    def stop(self) -> None:
        """End what is running and start nothing more."""
        with self._lock:
            self._stopped = True
            for process in self._running:
                process.terminate()


def _wait(process: "subprocess.Popen[bytes]") -> int | None:
    if not hasattr(os, "wait4"):
        process.wait()
        return None
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def run_experiment(
    matrix: Matrix,
    output: Path,
    *,
    workers: int = 1,
    gpu_id: int = -1,
    force: bool = False,
    on_result: Callable[[dict[str, Any]], None] | None = None,
    show_progress: bool = True,
) -> RunSummary:
    """Run all cells that have no valid result yet. A failing cell does not stop the others, and a
    cell that was interrupted leaves nothing that looks finished.

    matrix (Matrix): The experiment.
    output (Path): A directory that gets one directory a cell.
    workers (int): Cells at a time; they share the CPU cores.
    gpu_id (int): The GPU; -1 for the CPU.
    force (bool): Run also what has a valid result.
    on_result (Optional[Callable]): Sees the result of each cell as it comes.
    show_progress (bool): Whether to show a progress bar.
    RETURNS (RunSummary): What ran, was kept, and failed.
    """
    cells = list(matrix.cells())
    for cell in cells:
        if not cell.config.is_file():
            raise FileNotFoundError(
                Errors.R203.format(path=cell.config, method=cell.method, encoder=cell.encoder)
            )
    output.mkdir(parents=True, exist_ok=True)
    summary = RunSummary()
    plans = {cell: _plan(cell, matrix, gpu_id) for cell in cells}
    todo = []
    for cell, plan in plans.items():
        if not force and _kept_result(output / cell.name, plan) is not None:
            summary.kept.append(cell.name)
        else:
            todo.append(cell)
    threads = max(1, (os.cpu_count() or 1) // workers)
    processes = _Processes()
    with ThreadPoolExecutor(workers) as pool:
        futures = {
            pool.submit(_run_cell, cell, matrix, plans[cell], output, gpu_id, threads, processes): (
                cell
            )
            for cell in todo
        }
        try:
            finished = tqdm(
                as_completed(futures), total=len(todo), desc="runs", disable=not show_progress
            )
            for future in finished:
                cell = futures[future]
                try:
                    result = future.result()
                except _CellFailed:
                    summary.failed[cell.name] = output / cell.name / LOG_FILE
                    continue
                summary.trained.append(cell.name)
                if on_result is not None:
                    on_result(result)
        except BaseException:
            processes.stop()
            pool.shutdown(wait=True, cancel_futures=True)
            raise
    return summary


def read_results(output: Path) -> list[dict[str, Any]]:
    """Read the finished cells of an experiment.

    output (Path): The directory given to run_experiment.
    RETURNS (List[Dict[str, Any]]): The results, by name of the cell.
    """
    results = [srsly.read_json(path) for path in sorted(output.glob(f"*/{RESULT_FILE}"))]
    if not results:
        raise FileNotFoundError(Errors.R204.format(path=output))
    return results


def _plan(cell: Cell, matrix: Matrix, gpu_id: int) -> dict[str, Any]:
    overrides: dict[str, Any] = dict(matrix.overrides)
    if cell.encoder == "trf" and gpu_id < 0:
        # torch refuses automatic mixed precision without a capable GPU.
        overrides["components.transformer.model.mixed_precision"] = False
        overrides["system.gpu_allocator"] = None
    return fingerprint(cell, matrix, overrides)


def _kept_result(directory: Path, plan: dict[str, Any]) -> dict[str, Any] | None:
    path = directory / RESULT_FILE
    if not path.is_file():
        return None
    result: dict[str, Any] = srsly.read_json(path)
    return result if result["fingerprint"] == plan else None


def _run_cell(
    cell: Cell,
    matrix: Matrix,
    plan: dict[str, Any],
    output: Path,
    gpu_id: int,
    threads: int,
    processes: _Processes,
) -> dict[str, Any]:
    final = output / cell.name
    partial = output / f".{cell.name}.partial"
    for stale in (final, partial):
        shutil.rmtree(stale, ignore_errors=True)
    partial.mkdir(parents=True)
    settings = partial / SETTINGS_FILE
    srsly.write_json(settings, _settings(cell, matrix, plan["overrides"], gpu_id))
    command = [sys.executable, "-m", "spacy_robust_ner.experiments.cell", str(settings)]
    try:
        peak_memory = processes.run(command, partial / LOG_FILE, threads)
    except _CellFailed:
        partial.replace(final)
        raise
    shutil.rmtree(partial / "model-last", ignore_errors=True)
    result = {
        "cell": cell.name,
        "corpus": cell.corpus.name,
        "masked": cell.corpus.masked,
        "method": cell.method,
        "title": cell.title,
        "encoder": cell.encoder,
        "seed": cell.seed,
        **srsly.read_json(partial / METRICS_FILE),
        "peak_bytes": peak_memory,
        "threads": threads,
        "fingerprint": plan,
    }
    (partial / METRICS_FILE).unlink()
    srsly.write_json(partial / RESULT_FILE, result)
    partial.replace(final)
    return result


def _settings(cell: Cell, matrix: Matrix, overrides: dict[str, Any], gpu_id: int) -> dict[str, Any]:
    return {
        "config": str(cell.config),
        "overrides": {
            "paths.train": str(cell.corpus.path),
            "paths.dev": str(matrix.dev),
            "system.seed": cell.seed,
            **overrides,
        },
        "test": str(matrix.test),
        "gpu_id": gpu_id,
    }
