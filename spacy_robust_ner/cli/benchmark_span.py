"""``benchmark span``: what the span component costs."""

from pathlib import Path
from typing import Annotated

import typer
from wasabi import msg

from ..benchmarks.span import METHODS, PARTS, SpanBenchmark, benchmark_span
from ..errors import Errors
from ._app import command, write_figures
from ._options import AsJson, Repetitions, ReportPath
from .benchmark import benchmark_app


@command("span", group=benchmark_app)
def benchmark_span_cli(
    encoder: Annotated[
        Path | None,
        typer.Option(
            help="Directory of a transformer. By default one of MiniLM's size (6 layers, width "
            "384) is made, with random weights."
        ),
    ] = None,
    parts: Annotated[
        list[str] | None,
        typer.Option("--part", help=f"Measure only this: {', '.join(PARTS)}. Can be repeated."),
    ] = None,
    methods: Annotated[
        list[str] | None,
        typer.Option("--method", "-m", help=f"By default {', '.join(METHODS)}. Can be repeated."),
    ] = None,
    batch_size: Annotated[int, typer.Option(help="Sentences a training batch.")] = 16,
    max_width: Annotated[int, typer.Option(help="Tokens in the widest candidate span.")] = 10,
    repetitions: Repetitions = 7,
    report_path: ReportPath = None,
    as_json: AsJson = False,
) -> None:
    """Time the span component beside its encoder and beside other components.

    Everything runs on one thread, in turns, and is measured in processor time, since the clock
    tells little on a machine that others use. Only the ratios mean something elsewhere.

    Training: reading the annotation, sampling, scoring spans, loss and its backward pass, as a
    share of the bare encoder's forward and backward pass on the same batch (one word piece a
    token). A real step also tokenizes, aligns, pools and runs the optimizer, so that the share in
    it is smaller.

    Inference: words a second of transformer + robust_span_ner by that of transformer + ner, and of
    transformer + spancat_singlelabel with the same widths. Each has learned the made-up names for
    a few steps, because an untrained component would be busy with writing entities.

    Memory: the peak of a process for one long document with the CNN pipe, each in a new process.
    """
    for part in parts or ():
        if part not in PARTS:
            raise ValueError(
                Errors.R016.format(value=part, option="--part", known=", ".join(PARTS))
            )
    result = benchmark_span(
        encoder=encoder,
        parts=parts or PARTS,
        methods=methods or METHODS,
        batch_size=batch_size,
        max_width=max_width,
        repetitions=repetitions,
    )
    if write_figures(result.to_dict(), report_path, as_json=as_json):
        return
    _show(result)


def _show(result: SpanBenchmark) -> None:
    if result.training:
        lengths = sorted({cost.length for cost in result.training})
        shares = {(cost.method, cost.length): cost.share for cost in result.training}
        names = dict.fromkeys(cost.method for cost in result.training)
        msg.divider("Training: added to the encoder's step")
        msg.table(
            [(name, *(f"{shares[name, n]:.1%}" for n in lengths)) for name in names],
            header=("method", *(f"{n} tokens" for n in lengths)),
            aligns=("l", *"r" * len(lengths)),
        )
    if result.inference:
        msg.divider("Inference: words a second")
        msg.table(
            [
                (speed.component, f"{speed.words_per_second:,.0f}", str(speed.entities))
                for speed in result.inference
            ],
            header=("transformer +", "words/s", "entities found"),
            aligns=("l", *"rr"),
        )
        for rival, ratio in result.speed_ratios.items():
            msg.text(f"robust_span_ner by {rival}: {ratio:.2f}")
    if result.memory:
        msg.divider("Memory: one document, CNN pipe")
        msg.table(
            [
                (f"{item.tokens:,}", _megabytes(item.peak_megabytes), _megabytes(item.growth))
                for item in result.memory
            ],
            header=("tokens", "peak", "of which the document"),
            aligns=("r", *"rr"),
        )


def _megabytes(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f} MB"
