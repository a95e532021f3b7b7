"""``report``: tables, drawings and errors of an experiment's results."""

import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from tqdm import tqdm
from wasabi import msg

from ..diagnostics.analysis import RunAnalysis, analyse_run
from ..diagnostics.comparison import Section, arrange, percent
from ..diagnostics.error_browser import PASSAGES
from ..diagnostics.page import Page
from ..diagnostics.report import build_report
from ..diagnostics.report_tables import score_table
from ..diagnostics.results import read_runs
from ..experiments.matrix_file import GIVEN_ENCODERS, load_matrix
from ._app import command
from ._options import EncoderOfAllRuns


def read_sections(
    matrix: Path, runs: Path, *, encoder: str = GIVEN_ENCODERS
) -> tuple[str, list[Section], list[str]]:
    """Read the finished runs of an experiment.

    matrix (Path): The experiment file.
    runs (Path): The directory of its runs.
    encoder (str): The encoder that the runs had instead of the file's.
    RETURNS (Tuple[str, List[Section], List[str]]): Its title, its runs, and the names of those that
        are not finished.
    """
    experiment = load_matrix(matrix, encoder=encoder)
    names = [cell.name for cell in experiment.cells()]
    finished = read_runs(runs, set(names))
    unfinished = {*names} - {run.result["cell"] for run in finished}
    return experiment.title, arrange(finished, names), [n for n in names if n in unfinished]


def write_report(
    title: str,
    sections: Sequence[Section],
    output: Path,
    *,
    unfinished: Sequence[str] = (),
    seed: int = 0,
    show_progress: bool = False,
) -> Page:
    """Write the report of an experiment as Markdown and HTML.

    title (str): The headline.
    sections (Sequence[Section]): The runs.
    output (Path): A directory for report.md, report.html and the drawings.
    unfinished (Sequence[str]): Names of runs that are missing.
    seed (int): The seed of the bootstrap.
    show_progress (bool): Whether to show a progress bar.
    RETURNS (Page): The page.
    """
    analyses = _analyse(sections, show_progress)
    plots = importlib.util.find_spec("matplotlib") is not None
    page = build_report(title, sections, analyses, unfinished=unfinished, plots=plots, seed=seed)
    page.write_markdown(output / "report.md")
    page.write_html(output / "report.html")
    return page


def _analyse(sections: Sequence[Section], show_progress: bool) -> dict[str, RunAnalysis]:
    settings = [own for section in sections for own in section.cells.values()]
    analyses: dict[str, RunAnalysis] = {}
    with tqdm(total=sum(map(len, settings)), unit=" runs", disable=not show_progress) as progress:
        for runs in settings:
            # The error browser shows the first seed of a setting.
            limit = PASSAGES
            for run in runs:
                analysis = analyse_run(run, limit=limit)
                if analysis is not None:
                    analyses[run.result["cell"]] = analysis
                    limit = 0
                progress.update()
    return analyses


@command("report")
def report_cli(
    matrix: Annotated[Path, typer.Argument(help="Experiment file (YAML or TOML).")],
    runs: Annotated[Path, typer.Argument(help="Directory of its runs.")],
    output: Annotated[Path, typer.Argument(help="Directory for the report.")],
    encoder: EncoderOfAllRuns = GIVEN_ENCODERS,
    seed: Annotated[int, typer.Option(help="Seed of the bootstrap intervals.")] = 0,
) -> None:
    """Compare an experiment's results, as Markdown and as one HTML file that opens anywhere.

    Tables with the mean and standard deviation over seeds, the difference to the naive model with
    a bootstrap interval, drawings, published figures of the same setting, cost, and, in the HTML
    file, a browser of the errors.
    """
    title, sections, unfinished = read_sections(matrix, runs, encoder=encoder)
    if unfinished:
        msg.warn(f"{len(unfinished)} runs are not finished, and are not in the report.")
    if importlib.util.find_spec("matplotlib") is None:
        msg.warn("No drawings: they need matplotlib (pip install 'spacy-robust-ner[plots]').")
    write_report(
        title,
        sections,
        output,
        unfinished=unfinished,
        seed=seed,
        show_progress=sys.stderr.isatty(),
    )
    for section in sections:
        table = score_table(section, percent("f1"))
        msg.divider(f"F1: {section.title}")
        aligns = ("l", *("r" for _ in table.header[1:]))
        msg.table(table.rows, header=tuple(table.header), aligns=aligns, divider=True)
    msg.good(f"Report: {output / 'report.md'} and {output / 'report.html'}")
