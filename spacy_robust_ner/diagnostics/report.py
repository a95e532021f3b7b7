"""From the results of an experiment to a page that people want to look at."""

from collections.abc import Sequence

from .bootstrap import CONFIDENCE, RESAMPLES
from .comparison import Section, percent, recovered_share
from .error_browser import error_browser
from .error_types import KINDS
from .page import Block, Details, Heading, Page, Paragraph
from .report_tables import (
    calibration_table,
    cost_table,
    difference_table,
    error_table,
    label_table,
    naive_names,
    precision_recall_table,
    published_table,
    score_table,
)
from .result_plots import (
    f1_by_epoch,
    f1_by_masking,
    f1_by_method,
    reliability_curves,
    sensitivity_plot,
)
from .results import Masking, Run, Split
from .section_figures import Analyses, SectionFigures, measure_section
from .sensitivity import find_sensitivities

_SPLITS: dict[Split, str] = {"test": "Test text:", "train": "Training text:"}


def build_report(
    title: str,
    sections: Sequence[Section],
    analyses: Analyses,
    *,
    unfinished: Sequence[str] = (),
    plots: bool = True,
    seed: int = 0,
) -> Page:
    """Write the report of an experiment.

    title (str): The headline.
    sections (Sequence[Section]): The runs.
    analyses (Analyses): The predictions of those runs that kept them.
    unfinished (Sequence[str]): Names of runs that the experiment asks for and that are missing.
    plots (bool): Whether to draw, which needs matplotlib.
    seed (int): The seed of the bootstrap.
    RETURNS (Page): The page.
    """
    runs = [run for section in sections for own in section.cells.values() for run in own]
    page = Page(title)
    page.add(_introduction(runs, sections))
    if unfinished:
        page.add(_unfinished(unfinished))
    for section in sections:
        page.add(*_section(section, measure_section(section, analyses, seed=seed), plots))
    browser = error_browser(sections, analyses)
    if browser is not None:
        page.add(Heading("Errors to look at"), browser)
    page.add(Heading("How to repeat"), _versions(runs))
    return page


def _introduction(runs: Sequence[Run], sections: Sequence[Section]) -> Paragraph:
    seeds = sorted({run.result["seed"] for run in runs})
    rows = {row.variant for section in sections for row in section.rows}
    names = ", ".join(dict.fromkeys(section.dataset for section in sections))
    return Paragraph(
        f"{_count(len(runs), 'training run')}: {_count(len(rows), 'method')} on {names}; "
        f"{'seed' if len(seeds) == 1 else 'seeds'} {', '.join(map(str, seeds))}. Where a share of "
        "the entities is masked, they have lost their label in the training data and look like "
        "ordinary text. Every run keeps the checkpoint that is best on the development data; "
        "figures are exact-span scores on fully annotated test data in percent, with the standard "
        "deviation over seeds where there are several."
    )


def _unfinished(names: Sequence[str]) -> Block:
    text = f"{_count(len(names), 'run')} of the experiment failed or did not run yet"
    return Details(text, [Paragraph(", ".join(f"`{name}`" for name in names))])


def _section(section: Section, figures: SectionFigures, plots: bool) -> list[Block]:
    return [
        Heading(section.title),
        Paragraph(_finding(section)),
        *_scores(section, plots),
        *_differences(section, figures),
        Heading("Precision and recall", 3),
        Paragraph(
            "Each cell is precision / recall. What a model learned to overlook is missing in its "
            "recall."
        ),
        precision_recall_table(section),
        *_recovery(section),
        *_sensitivity(section, plots),
        *_training(section, plots),
        *_reliability(section, figures, plots),
        *_by_label(section),
        *_errors(section, figures),
        *_published(section),
        Heading("Cost", 3),
        cost_table(section),
        Paragraph(_machine(section)),
    ]


def _scores(section: Section, plots: bool) -> list[Block]:
    blocks: list[Block] = [Heading("F1", 3)]
    if plots:
        draw = f1_by_masking if len({c.rate for c in section.columns}) > 1 else f1_by_method
        blocks.append(draw(section))
    return [*blocks, score_table(section, percent("f1"))]


def _differences(section: Section, figures: SectionFigures) -> list[Block]:
    if not figures.differences:
        return []
    return [
        Heading("Difference to the naive model", 3),
        Paragraph(
            "The naive model trusts every unlabeled token or span. Each method is compared with "
            f"that of its own kind ({', '.join(naive_names(figures))}): the difference of F1 over "
            f"all seeds together, and the interval that holds {CONFIDENCE:.0%} of {RESAMPLES:,} "
            "paired bootstrap resamples of the test documents. ▲ and ▼ mark intervals without "
            "zero. The interval is about the choice of test documents, not about seeds. A dash "
            "stands where runs are missing, or kept no predictions, or have other test documents."
        ),
        difference_table(section, figures),
    ]


def _recovery(section: Section) -> list[Block]:
    if not any(recovered_share(run.result) for own in section.cells.values() for run in own):
        return []
    return [
        Heading("Masked entities that are found again", 3),
        Paragraph(
            "The share of the masked entities of the training text that the trained pipeline "
            "finds there, though their labels were hidden from it."
        ),
        score_table(section, recovered_share),
    ]


def _sensitivity(section: Section, plots: bool) -> list[Block]:
    found = find_sensitivities(section) if plots else []
    if not found:
        return []
    drawings = [sensitivity_plot(section, sensitivity) for sensitivity in found]
    return [Heading("Settings", 3), *drawings]


def _training(section: Section, plots: bool) -> list[Block]:
    figure = f1_by_epoch(section) if plots else None
    return [] if figure is None else [Heading("The course of training", 3), figure]


def _reliability(section: Section, figures: SectionFigures, plots: bool) -> list[Block]:
    if not figures.reliability:
        return []
    figure = reliability_curves(section, figures.reliability) if plots else None
    return [
        Heading("Can the probabilities be trusted?", 3),
        *([] if figure is None else [figure]),
        Paragraph(
            "Expected calibration error in percent: the mean distance between the probability of "
            "predicted entities and their precision. Less is better; components without "
            "probabilities have none."
        ),
        calibration_table(section, figures),
    ]


def _by_label(section: Section) -> list[Block]:
    return [
        Heading("F1 by label", 3),
        *(
            Details(section.column_title(column), [label_table(section, column)])
            for column in section.columns
        ),
    ]


def _errors(section: Section, figures: SectionFigures) -> list[Block]:
    def tables(column: Masking) -> list[Block]:
        blocks: list[Block] = []
        for split, text in _SPLITS.items():
            kinds = [kind for kind in KINDS if split == "train" or "recovered" not in kind]
            table = error_table(section, figures, column, split, kinds)
            if table.rows:
                blocks += [Paragraph(text), table]
        return blocks

    filled = {column: own for column in section.columns if (own := tables(column))}
    if not filled:
        return []
    return [
        Heading("Kinds of errors", 3),
        Paragraph("How many entities a run has of each kind."),
        *(Details(section.column_title(column), own) for column, own in filled.items()),
    ]


def _published(section: Section) -> list[Block]:
    table = published_table(section)
    if table is None:
        return []
    return [
        Heading("Beside published figures", 3),
        Paragraph(
            "Publications that report the same method on the same data with the same masking. "
            "Their encoders differ, which often matters more than the method."
        ),
        table,
    ]


def _finding(section: Section) -> str:
    """RETURNS (str): What the best method is worth where most labels are gone."""
    column = section.columns[-1]
    scores = {
        row: score
        for row in section.rows
        if (score := section.score(row, column, percent("f1"))) is not None
    }
    if len(scores) < 2:
        return "There are too few finished runs for a comparison."
    last, *_, best = sorted(scores, key=lambda row: scores[row].mean)
    finding = f"With {section.column_title(column)}, {best.title} reaches F1 {scores[best]}"
    naive = section.naive(best, column)
    if naive is None:
        return f"{finding} and {last.title} {scores[last]}."
    if naive == best:
        return f"{finding}, and nothing is better than this naive model."
    return f"{finding}, and the naive model of its kind, {naive.title}, {scores[naive]}."


def _machine(section: Section) -> str:
    results = [run.result for own in section.cells.values() for run in own]
    threads = sorted({int(result["threads"]) for result in results if result.get("threads")})
    devices = sorted({str(result["device"]) for result in results if result.get("device")})
    parts = [", ".join(devices) if devices else "device unknown"]
    if threads:
        counts = ", ".join(map(str, threads))
        parts.append(f"{counts} CPU {'thread' if threads == [1] else 'threads'} a run")
    return (
        f"On {'; '.join(parts)}. Means over runs; 'against naive' is the time of training by that "
        "of the naive model of the same kind."
    )


def _versions(runs: Sequence[Run]) -> Paragraph:
    versions = runs[0].result.get("fingerprint", {}).get("versions", {})
    named = ", ".join(f"{package} {number}" for package, number in versions.items())
    return Paragraph(
        f"Versions: {named or 'unknown'}. Each run's directory holds its log, its predictions and "
        "`result.json` with hashes of its config and corpora; `results.jsonl` has all results in "
        "one file."
    )


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
