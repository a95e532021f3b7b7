"""``benchmark tagger``: what the token component costs."""

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Annotated

import typer
from wasabi import msg

from ..benchmarks.ratio import Ratio
from ..benchmarks.tagger import ENCODERS, METHODS, PARTS, TaggerBenchmark, benchmark_tagger
from ..errors import Errors
from ._app import command, write_figures
from ._options import AsJson, Repetitions, ReportPath
from .benchmark import benchmark_app

_MARKS = {True: "ok", False: "ABOVE", None: ""}
_ENCODER_NAMES = {"trf": "transformer", "cnn": "CNN"}


@command("tagger", group=benchmark_app)
def benchmark_tagger_cli(
    encoders: Annotated[
        list[str] | None,
        typer.Option(
            "--encoder", "-e", help=f"Only with this: {', '.join(ENCODERS)}. Can be repeated."
        ),
    ] = None,
    transformer: Annotated[
        Path | None,
        typer.Option(
            "--transformer",
            "-t",
            help="Directory of a transformer. By default one of MiniLM's size (6 layers, width "
            "384) is made, with random weights.",
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
    batch_size: Annotated[
        int | None,
        typer.Option(help="Sentences a training batch; by default as many as the recipe has."),
    ] = None,
    run_epochs: Annotated[
        int, typer.Option(help="Epochs of the run that exploration is compared with.")
    ] = 20,
    repetitions: Repetitions = 7,
    report_path: ReportPath = None,
    as_json: AsJson = False,
) -> None:
    """Time the token component beside its encoder and beside spaCy's ner.

    Everything runs on one thread, in turns, and is measured in processor time, since the clock
    tells little on a machine that others use. Only the ratios mean something elsewhere; beside
    each stands what it may be at most.

    Training: head, loss and their gradients, with reading the annotation, by the encoder's forward
    and backward pass in spaCy, for sentences of 15 and of 50 tokens with 17 tags (four labels,
    BIOES); what removed tokens and NON spans add, by a whole training step; a training step of
    token-ratio by one of ner.

    Inference: Viterbi, and Viterbi with the entities' probabilities, by the whole of nlp.pipe, for
    sentences of 5 to 45 tokens; nlp.pipe of token-ratio by that of ner.

    Exploration: what two-step learning adds before training, with its prediction pass, by a run of
    20 epochs without evaluation.
    """
    for option, values, known in (
        ("--part", parts, PARTS),
        ("--encoder", encoders, ENCODERS),
    ):
        for value in values or ():
            if value not in known:
                raise ValueError(
                    Errors.R016.format(value=value, option=option, known=", ".join(known))
                )
    result = benchmark_tagger(
        encoders=encoders or ENCODERS,
        transformer=transformer,
        parts=parts or PARTS,
        methods=methods or METHODS,
        batch_size=batch_size,
        run_epochs=run_epochs,
        repetitions=repetitions,
    )
    if write_figures(result.to_dict(), report_path, as_json=as_json):
        return
    _show(result)


def _show(result: TaggerBenchmark) -> None:
    for (encoder, part), ratios in groupby(
        result.ratios, key=lambda ratio: (ratio.encoder, ratio.part)
    ):
        msg.divider(f"{_ENCODER_NAMES[encoder]}: {part}")
        _show_table(list(ratios))
    if result.failed:
        msg.warn(f"{len(result.failed)} of {len(result.ratios)} figures are above their limits.")


def _show_table(ratios: Sequence[Ratio]) -> None:
    msg.table(
        [
            (
                ratio.what,
                f"{1000 * ratio.seconds:,.1f} ms",
                ratio.base,
                _quotient(ratio, ratio.value),
                "" if ratio.limit is None else _quotient(ratio, ratio.limit),
                _MARKS[ratio.passed],
            )
            for ratio in ratios
        ],
        header=("what", "time", "by", "ratio", "at most", ""),
        aligns=("l", "r", "l", "r", "r", "l"),
        max_col=60,
    )


def _quotient(ratio: Ratio, value: float) -> str:
    """A part is a percentage, and a rival's time a factor."""
    is_factor = ratio.limit is not None and ratio.limit > 1
    return f"{value:.2f}" if is_factor else f"{value:.1%}"
