"""``experiment``: train and evaluate every cell of an experiment file."""

import signal
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from wasabi import msg

from ..experiments.matrix import load_matrix
from ..experiments.runner import run_experiment
from ._app import command


@command("experiment")
def experiment_cli(
    matrix: Annotated[Path, typer.Argument(help="Experiment file (YAML).")],
    output: Annotated[Path, typer.Argument(help="Directory for the runs.")],
    workers: Annotated[
        int, typer.Option("--workers", "-w", min=1, help="Runs at a time on the CPU.")
    ] = 1,
    gpu_id: Annotated[int, typer.Option("--gpu-id", "-g", help="GPU, or -1 for the CPU.")] = -1,
    force: Annotated[bool, typer.Option("--force", help="Repeat finished runs, too.")] = False,
) -> None:
    """Train and evaluate every combination of corpus, method, encoder and seed.

    Finished runs are kept as long as their config, corpora, settings and versions stay the same,
    so that the command can be interrupted and called again.
    """
    # Ended from outside, the command shall end its runs as well, as it does for Ctrl+C.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    summary = run_experiment(
        load_matrix(matrix),
        output,
        workers=workers,
        gpu_id=gpu_id,
        force=force,
        on_result=_show,
        show_progress=sys.stderr.isatty(),
    )
    msg.info(f"{len(summary.trained)} runs trained, {len(summary.kept)} kept from before")
    for name, log in summary.failed.items():
        msg.fail(f"{name} failed; its log: {log}")
    if summary.failed:
        raise typer.Exit(1)


def _show(result: dict[str, Any]) -> None:
    figures = " ".join(
        f"{short} {100 * result['test'][name]:.2f}"
        for short, name in (("P", "precision"), ("R", "recall"), ("F", "f1"))
    )
    msg.good(f"{result['cell']}  {figures}  ({result['training_seconds']:.0f} s)")
