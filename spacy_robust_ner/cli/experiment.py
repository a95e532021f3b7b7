"""``experiment``: train and evaluate every cell of an experiment file."""

import shutil
import signal
import sys
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer
from wasabi import msg

from ..errors import Errors
from ..experiments.executors import Executor, LocalExecutor
from ..experiments.matrix import Matrix
from ..experiments.matrix_file import GIVEN_ENCODERS, load_matrix
from ..experiments.progress import Progress
from ..experiments.ray_executor import RayExecutor
from ..experiments.runner import RunSummary, find_states, run_experiment
from ._app import command
from ._options import EncoderOfAllRuns


@command("experiment")
def experiment_cli(
    matrix: Annotated[Path, typer.Argument(help="Experiment file (YAML or TOML).")],
    output: Annotated[Path, typer.Argument(help="Directory for the runs.")],
    workers: Annotated[
        int, typer.Option("--workers", "-w", min=1, help="Runs at a time on the CPU.")
    ] = 1,
    gpu_ids: Annotated[
        str,
        typer.Option(
            "--gpu-ids", "-g", help="GPUs, as in 0,1, with one run at a time each. -1 for the CPU."
        ),
    ] = "-1",
    threads: Annotated[
        int | None,
        typer.Option(
            min=1, help="CPU threads a run. By default, runs share all cores; with --ray, 1."
        ),
    ] = None,
    ray: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Run on a Ray cluster whose machines share this directory, at the same path: "
            "'auto' or an address, 'local' for a new one on this machine. Needs the extra 'ray'. "
            "Ray decides how many run at a time; with --gpu-ids, each run gets a GPU that Ray "
            "chooses.",
        ),
    ] = None,
    encoder: EncoderOfAllRuns = GIVEN_ENCODERS,
    force: Annotated[bool, typer.Option("--force", help="Repeat finished runs, too.")] = False,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Only list the runs, and say which ones are finished."),
    ] = False,
) -> None:
    """Train and evaluate every combination of dataset, masking, method, encoder and seed.

    Finished runs are kept as long as their config, corpora, settings and versions stay the same,
    so that the command can be interrupted and called again. A run that fails leaves its log, and
    the others go on.
    """
    experiment = load_matrix(matrix, encoder=encoder)
    gpus = parse_gpu_ids(gpu_ids)
    if dry_run:
        _list_cells(experiment, output, gpu=bool(gpus))
        return
    executor: Executor
    if ray is not None:
        executor = RayExecutor(ray, gpu=bool(gpus), threads=threads or 1)
    else:
        executor = LocalExecutor(workers=workers, gpu_ids=gpus, threads=threads)
    status = StatusLine(sys.stderr)

    def show_end(name: str, result: dict[str, Any] | None, progress: Progress) -> None:
        status.clear()
        _show(name, result, progress)

    # Ended from outside, the command shall end its runs as well, as it does for Ctrl+C. Ray has a
    # handler of its own until then, which aborts.
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        summary = run_experiment(
            experiment,
            output,
            executor=executor,
            force=force,
            on_start=_announce,
            on_wait=status.show if status.visible else None,
            on_end=show_end,
        )
    finally:
        status.clear()
        signal.signal(signal.SIGTERM, before)
    msg.info(f"{len(summary.trained)} runs trained, {len(summary.kept)} kept from before")
    for name, log in summary.failed.items():
        msg.fail(f"{name} failed; its log: {log}", _last_line(log))
    if summary.failed:
        raise typer.Exit(1)


def parse_gpu_ids(value: str) -> list[int]:
    """Read the option --gpu-ids.

    value (str): Numbers with commas between them, or -1.
    RETURNS (List[int]): The GPUs; none for the CPU.
    """
    try:
        gpu_ids = [int(part) for part in value.split(",")]
    except ValueError as error:
        raise ValueError(Errors.R209.format(value=value)) from error
    if gpu_ids == [-1]:
        return []
    if min(gpu_ids) < 0 or len(set(gpu_ids)) < len(gpu_ids):
        raise ValueError(Errors.R209.format(value=value))
    return gpu_ids


def _list_cells(experiment: Matrix, output: Path, *, gpu: bool) -> None:
    states = find_states(experiment, output, gpu=gpu)
    msg.table(states.items(), header=("run", "state"), divider=True, max_col=200)
    finished = sum(state == "finished" for state in states.values())
    msg.info(f"{len(states)} runs, {finished} finished, {len(states) - finished} to do")


def _announce(summary: RunSummary, progress: Progress) -> None:
    if progress.total:
        msg.info(
            f"{progress.total} runs to do, {progress.slots} at a time; {len(summary.kept)} kept "
            "from before"
        )


class StatusLine:
    """The last line of a terminal, which says how far the runs are until one of them ends.

    stream (TextIO): The terminal; on anything else, the line is not visible.
    """

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.visible = stream.isatty()

    def show(self, progress: Progress) -> None:
        """progress (Progress): What to say now."""
        shares = ", ".join(f"{share:.0%}" for share in progress.running)
        parts = [f"{progress.done}/{progress.total} done", f"running: {shares or 'none yet'}"]
        if remaining := progress.remaining():
            parts.append(f"about {_duration(remaining)} left")
        line = "  ".join(parts)[: shutil.get_terminal_size().columns - 1]
        self._write(line)

    def clear(self) -> None:
        """Make room for other output."""
        self._write("")

    def _write(self, line: str) -> None:
        if self.visible:
            # Back to the beginning of the line, and erase it.
            self.stream.write(f"\r\x1b[2K{line}")
            self.stream.flush()


def _last_line(log: Path) -> str:
    lines = log.read_text(encoding="utf8", errors="replace").split("\n")
    return next((line for line in reversed(lines) if line.strip()), "")


def _show(name: str, result: dict[str, Any] | None, progress: Progress) -> None:
    # Not with msg, which breaks lines.
    remaining = progress.remaining()
    left = "" if not remaining else f"  about {_duration(remaining)} left"
    count = f"{progress.done}/{progress.total}"
    if result is None:
        typer.secho(f"✘ {count} {name}  failed{left}", fg="red")
        return
    figures = " ".join(
        f"{short} {100 * result['test'][figure]:.2f}"
        for short, figure in (("P", "precision"), ("R", "recall"), ("F", "f1"))
    )
    took = _duration(result["seconds"])
    typer.secho(f"✔ {count} {name}  {figures}  ({took}){left}", fg="green")


def _duration(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {seconds} s" if minutes else f"{seconds} s"
