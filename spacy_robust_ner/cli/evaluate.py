"""``evaluate``: exact-span figures of a pipeline on a gold corpus."""

import sys
from pathlib import Path
from typing import Annotated, Any

import spacy
import typer
from spacy.cli._util import setup_gpu
from tqdm import tqdm
from wasabi import msg

from ..corpus.io import read_docs
from ..diagnostics.evaluation import Evaluation, evaluate_pipeline
from ._app import command, write_json
from ._options import AsJson, GpuId, JsonOutput


def evaluate(
    model: str, data: Path, *, spans_key: str | None = None, show_progress: bool = False
) -> Evaluation:
    """Evaluate a saved or packaged pipeline.

    model (str): The pipeline's directory or package name.
    data (Path): The gold corpus.
    spans_key (Optional[str]): The span group with the predictions; found out if not given.
    show_progress (bool): Whether to show a progress bar.
    RETURNS (Evaluation): The figures.
    """
    nlp = spacy.load(model)
    docs = tqdm(read_docs(data, nlp.vocab), unit=" docs", disable=not show_progress)
    return evaluate_pipeline(nlp, docs, spans_key=spans_key)


@command("evaluate")
def evaluate_cli(
    model: Annotated[str, typer.Argument(help="Pipeline: a directory or a package's name.")],
    data: Annotated[Path, typer.Argument(help="Gold corpus: .spacy file or directory.")],
    spans_key: Annotated[
        str | None,
        typer.Option(
            "--spans-key", help="Span group with the predictions; found out if not given."
        ),
    ] = None,
    gpu_id: GpuId = -1,
    as_json: AsJson = False,
    output: JsonOutput = None,
) -> None:
    """Exact-span precision, recall and F1, overall and a label, on gold tokens.

    Unlike `spacy evaluate` it also compares a span categorizer with gold entities, so that all
    methods have the same figure.
    """
    setup_gpu(gpu_id, silent=True)
    figures = evaluate(
        model, data, spans_key=spans_key, show_progress=sys.stderr.isatty()
    ).as_dict()
    if output is not None:
        write_json(figures, output)
    if as_json:
        write_json(figures, None)
        return
    rows = [_row("all", figures), *(_row(*item) for item in figures["per_label"].items())]
    msg.table(
        rows,
        header=("label", "P", "R", "F1", "gold", "predicted"),
        aligns=("l", *"rrrrr"),
        divider=True,
    )


def _row(label: str, figures: dict[str, Any]) -> tuple[str, ...]:
    scores = (f"{100 * figures[name]:.2f}" for name in ("precision", "recall", "f1"))
    return (label, *scores, str(figures["gold"]), str(figures["predicted"]))
