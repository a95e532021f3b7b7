"""The tables of a report."""

from collections.abc import Callable, Iterable
from statistics import mean

from .comparison import FigureOf, Row, Section, label_f1, percent
from .error_types import Kind
from .page import Table
from .published import published_beside
from .results import Masking, Result, Split
from .section_figures import SectionFigures

NONE = "–"


def score_table(section: Section, figure: FigureOf) -> Table:
    """RETURNS (Table): A figure of every setting, the best of each column marked."""
    scores = [
        [section.score(row, column, figure) for column in section.columns] for row in section.rows
    ]
    rows = [
        [row.title, *(NONE if score is None else str(score) for score in own)]
        for row, own in zip(section.rows, scores, strict=True)
    ]
    means = [[None if score is None else score.mean for score in own] for own in scores]
    return Table(_header(section), rows, _best(means))


def difference_table(section: Section, figures: SectionFigures) -> Table:
    """RETURNS (Table): The difference of F1 to the naive model, with its interval."""

    def show(row: Row, column: Masking) -> str:
        if figures.naive.get((row, column)) == row:
            return "reference"
        difference = figures.differences.get((row, column))
        if difference is None:
            return NONE
        sign = "" if not difference.is_clear else "▲ " if difference.value > 0 else "▼ "
        value, low, high = (
            f"{100 * number:+.1f}".replace("-", "−")
            for number in (difference.value, difference.low, difference.high)
        )
        return f"{sign}{value} [{low}, {high}]"

    return _setting_table(section, show)


def naive_names(figures: SectionFigures) -> list[str]:
    """RETURNS (List[str]): The titles of the naive models that others are compared with."""
    return list(dict.fromkeys(row.title for row in figures.naive.values()))


def precision_recall_table(section: Section) -> Table:
    """RETURNS (Table): Precision and recall of every setting."""

    def show(row: Row, column: Masking) -> str:
        precision = section.score(row, column, percent("precision"))
        recall = section.score(row, column, percent("recall"))
        return NONE if precision is None or recall is None else f"{precision} / {recall}"

    return _setting_table(section, show)


def label_table(section: Section, column: Masking) -> Table:
    """RETURNS (Table): The F1 of each label with one version of the training data."""
    labels = sorted(
        {
            label
            for runs in section.cells.values()
            for run in runs
            for label, figures in run.result["test"]["per_label"].items()
            if figures["gold"]
        }
    )
    rows, means = [], []
    for row in section.rows:
        scores = [section.score(row, column, label_f1(label)) for label in labels]
        if section.runs(row, column):
            rows.append([row.title, *(NONE if s is None else str(s) for s in scores)])
            means.append([None if s is None else s.mean for s in scores])
    return Table(["method", *labels], rows, _best(means))


def error_table(
    section: Section, figures: SectionFigures, column: Masking, split: Split, kinds: Iterable[Kind]
) -> Table:
    """RETURNS (Table): Errors of each kind a run, with one version of the training data."""
    kinds = list(kinds)
    rows = []
    for row in section.rows:
        counts = figures.kinds.get(((row, column), split))
        if counts is not None:
            runs = len(section.runs(row, column))
            rows.append([row.title, *(f"{counts[kind] / runs:,.0f}" for kind in kinds)])
    return Table(["method", *kinds], rows)


def calibration_table(section: Section, figures: SectionFigures) -> Table:
    """RETURNS (Table): The calibration error of every setting, the least marked."""
    errors = [
        [
            None if curve is None else 100 * curve.calibration_error
            for column in section.columns
            for curve in [figures.reliability.get((row, column))]
        ]
        for row in section.rows
    ]
    rows = [
        [row.title, *(NONE if error is None else f"{error:.1f}" for error in own)]
        for row, own in zip(section.rows, errors, strict=True)
    ]
    negated = [[None if error is None else -error for error in own] for own in errors]
    return Table(_header(section), rows, _best(negated))


def published_table(section: Section) -> Table | None:
    """RETURNS (Optional[Table]): Publications of the same settings, or None if there are none."""
    read: dict[str, FigureOf] = {"test": percent("f1"), "dev": lambda r: 100 * r["dev_f1"]}
    rows = [
        [
            row.title,
            f"{section.column_title(column)}, {entry.split}",
            str(section.score(row, column, read[entry.split])),
            section.encoder,
            f"{entry.f1:.2f}",
            entry.encoder,
            entry.source,
        ]
        for row, column, entry in published_beside(section)
    ]
    header = ["method", "data", "F1 here", "encoder here", "F1 published", "encoder", "source"]
    return Table(header, rows, text_columns=frozenset({0, 1, 3, 5, 6})) if rows else None


def cost_table(section: Section) -> Table:
    """RETURNS (Table): Time and memory of each method, over all versions of the data."""

    def over_runs(row: Row, read: Callable[[Result], float | None]) -> str:
        values = [
            value
            for column in section.columns
            for run in section.runs(row, column)
            if (value := read(run.result)) is not None
        ]
        return f"{mean(values):,.0f}" if values else NONE

    rows = [
        [
            row.title,
            over_runs(row, lambda r: r["training_seconds"]),
            _relative_time(section, row),
            over_runs(row, lambda r: r["peak_bytes"] and r["peak_bytes"] / 2**20),
            over_runs(row, lambda r: r["test"]["tokens_per_second"]),
        ]
        for row in section.rows
    ]
    header = ["method", "training (s)", "against naive", "peak memory (MiB)", "tokens/s"]
    return Table(header, rows)


def _relative_time(section: Section, row: Row) -> str:
    ratios = []
    for column in section.columns:
        naive = section.naive(row, column)
        if naive is None or naive == row:
            continue
        own = section.score(row, column, lambda r: r["training_seconds"])
        other = section.score(naive, column, lambda r: r["training_seconds"])
        if own is not None and other is not None and other.mean:
            ratios.append(own.mean / other.mean)
    return f"×{mean(ratios):.2f}" if ratios else NONE


def _header(section: Section) -> list[str]:
    return ["method", *(section.column_title(column) for column in section.columns)]


def _setting_table(section: Section, show: Callable[[Row, Masking], str]) -> Table:
    rows = [[row.title, *(show(row, column) for column in section.columns)] for row in section.rows]
    return Table(_header(section), rows)


def _best(means: list[list[float | None]]) -> frozenset[tuple[int, int]]:
    """RETURNS (FrozenSet): The places of the greatest number of each column, if any is less."""
    best: set[tuple[int, int]] = set()
    for j in range(len(means[0]) if means else 0):
        # What looks equal in the table is equally good.
        ranked = {
            i: round(value, 1) for i, own in enumerate(means) if (value := own[j]) is not None
        }
        top = max(ranked.values(), default=0.0)
        if any(value < top for value in ranked.values()):
            best |= {(i, j + 1) for i, value in ranked.items() if value == top}
    return frozenset(best)
