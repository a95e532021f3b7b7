"""``experiment``: train and evaluate every cell of an experiment file."""

import signal
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from wasabi import msg

from ..errors import Errors
from ..experiments.executors import LocalExecutor
from ..experiments.matrix_file import load_matrix
from ..experiments.progress import Progress
from ..experiments.runner import run_experiment
from ._app import command


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
    force: Annotated[bool, typer.Option("--force", help="Repeat finished runs, too.")] = False,
) -> None:
    """Train and evaluate every combination of dataset, masking, method, encoder and seed.

    Finished runs are kept as long as their config, corpora, settings and versions stay the same,
    so that the command can be interrupted and called again.
    """
    # Ended from outside, the command shall end its runs as well, as it does for Ctrl+C.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    gpus = parse_gpu_ids(gpu_ids)
    summary = run_experiment(
        load_matrix(matrix),
        output,
        executor=LocalExecutor(workers=workers, gpu_ids=gpus),
        gpu=bool(gpus),
        force=force,
        on_end=_show,
    )
    msg.info(f"{len(summary.trained)} runs trained, {len(summary.kept)} kept from before")
    for name, log in summary.failed.items():
        msg.fail(f"{name} failed; its log: {log}")
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


def _show(name: str, result: dict[str, Any] | None, progress: Progress) -> None:
    count = f"[{progress.done}/{progress.total}]"
    remaining = progress.remaining()
    left = "" if not remaining else f"  about {_duration(remaining)} left"
    if result is None:
        msg.fail(f"{count} {name}  failed{left}")
        return
    figures = " ".join(
        f"{short} {100 * result['test'][figure]:.2f}"
        for short, figure in (("P", "precision"), ("R", "recall"), ("F", "f1"))
    )
    msg.good(f"{count} {name}  {figures}  ({_duration(result['seconds'])}){left}")


def _duration(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {seconds} s" if minutes else f"{seconds} s"
