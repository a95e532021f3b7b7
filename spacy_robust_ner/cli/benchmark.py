"""``benchmark``: a group of commands that measure speed and memory on this machine."""

from typing import Annotated

import typer
from wasabi import msg

from ..benchmarks.annotate import benchmark_annotate
from ._app import app, command, write_figures
from ._options import AsJson, ReportPath

benchmark_app = typer.Typer(
    help="Measure speed and memory on this machine, with synthetic data.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(benchmark_app, name="benchmark")


@command("annotate", group=benchmark_app)
def benchmark_annotate_cli(
    entries: Annotated[int, typer.Option(help="Names in the dictionary.")] = 100_000,
    tokens: Annotated[int, typer.Option(help="Tokens of the text, about.")] = 1_000_000,
    processes: Annotated[int, typer.Option("--processes", "-n", help="Processes.")] = 1,
    seed: Annotated[int, typer.Option(help="Seed of the data.")] = 0,
    report_path: ReportPath = None,
    as_json: AsJson = False,
) -> None:
    """Time 'annotate': build a dictionary and match it over raw text.

    Measured with the defaults (100,000 entries, 1,000,000 tokens) on an idle machine with 2 CPU
    cores: build 4.2 s; match alone 2.0 s; read, tokenize, match and write 23.9 s, which is 41,900
    tokens/s. Peak memory 615 MB, of which 372 MB are Python with spaCy before the dictionary is
    read.
    """
    result = benchmark_annotate(entries=entries, tokens=tokens, processes=processes, seed=seed)
    if write_figures(result.to_dict(), report_path, as_json=as_json):
        return
    msg.table(
        [
            ("Dictionary entries", f"{result.entries:,}"),
            ("Tokens", f"{result.tokens:,}"),
            ("Entities found", f"{result.matches:,}"),
            ("Processes", f"{result.processes}"),
            ("Build the matcher", f"{result.build_seconds:.2f} s"),
            ("Read, tokenize, match and write", f"{result.annotate_seconds:.2f} s"),
            ("Speed", f"{result.tokens_per_second:,} tokens/s"),
            ("CPU time: build", f"{result.build_cpu_seconds:.2f} s"),
            ("CPU time: match only", f"{result.match_cpu_seconds:.2f} s"),
            ("CPU time: annotate, main process", f"{result.annotate_cpu_seconds:.2f} s"),
            ("CPU time: annotate, workers", _seconds(result.worker_cpu_seconds)),
            ("Memory before", _megabytes(result.baseline_megabytes)),
            ("Memory at its peak", _megabytes(result.peak_megabytes)),
            ("Largest worker process", _megabytes(result.worker_megabytes)),
        ],
        aligns=("l", "r"),
        max_col=60,
    )


def _megabytes(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f} MB"


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f} s"
