"""``report``: tables and drawings of an experiment's results."""

from pathlib import Path
from typing import Annotated

import typer
from wasabi import msg

from ..diagnostics.page import Page
from ..diagnostics.plots import f1_by_masking
from ..diagnostics.report import build_report, compare
from ..errors import Errors
from ..experiments.matrix_file import load_matrix
from ..experiments.results import read_results
from ._app import command


def report(matrix: Path, runs: Path, output: Path) -> Page:
    """Write the report of an experiment as Markdown and HTML.

    matrix (Path): The experiment file.
    runs (Path): The directory of its runs.
    output (Path): A directory for report.md, report.html and the drawings.
    RETURNS (Page): The page.
    """
    experiment = load_matrix(matrix)
    wanted = {cell.name for cell in experiment.cells()}
    results = [result for result in read_results(runs) if result["cell"] in wanted]
    if not results:
        raise FileNotFoundError(Errors.R204.format(path=runs))
    comparison = compare(results, [variant.name for variant in experiment.methods])
    try:
        figures = [f1_by_masking(comparison)]
    except ImportError:
        msg.warn("No drawings: they need matplotlib (pip install 'spacy-robust-ner[plots]').")
        figures = []
    page = build_report(experiment.title, comparison, figures)
    page.write_markdown(output / "report.md")
    page.write_html(output / "report.html")
    return page


@command("report")
def report_cli(
    matrix: Annotated[Path, typer.Argument(help="Experiment file (YAML).")],
    runs: Annotated[Path, typer.Argument(help="Directory of its runs.")],
    output: Annotated[Path, typer.Argument(help="Directory for the report.")],
) -> None:
    """Show an experiment's results, and write them as Markdown and as one HTML file."""
    page = report(matrix, runs, output)
    msg.divider(page.title)
    typer.echo((output / "report.md").read_text(encoding="utf8"))
    msg.good(f"Report: {output / 'report.md'} and {output / 'report.html'}")
