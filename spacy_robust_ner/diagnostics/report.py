"""From the results of an experiment to a page that people want to look at."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import mean, stdev
from typing import Any

from .page import Figure, Heading, Page, Paragraph, Table

Result = dict[str, Any]


@dataclass(frozen=True)
class Score:
    """A figure over the seeds of one setting.

    mean (float): The mean.
    sd (float): The standard deviation; 0 for a single seed.
    seeds (int): How many runs it stands for.
    """

    mean: float
    sd: float
    seeds: int

    def __str__(self) -> str:
        spread = f" ± {self.sd:.1f}" if self.seeds > 1 else ""
        return f"{self.mean:.1f}{spread}"


@dataclass(frozen=True)
class Comparison:
    """Results arranged by row (method and encoder) and column (training corpus).

    rows (List[str]): The rows' titles, in the order of the experiment.
    columns (List[str]): The training corpora, from clean to most masked.
    masked (Dict[str, float]): The share of masked entities of each column.
    cells (Dict[Tuple[str, str], List[Result]]): The runs of each setting, one a seed.
    """

    rows: list[str]
    columns: list[str]
    masked: dict[str, float]
    cells: dict[tuple[str, str], list[Result]]

    def score(
        self, row: str, column: str, figure: Callable[[Result], float | None]
    ) -> Score | None:
        """RETURNS (Optional[Score]): A figure of a setting, or None if it has no runs."""
        runs = (figure(result) for result in self.cells.get((row, column), []))
        values = [value for value in runs if value is not None]
        if not values:
            return None
        return Score(mean(values), stdev(values) if len(values) > 1 else 0.0, len(values))


def percent(name: str) -> Callable[[Result], float]:
    """RETURNS (Callable): Reads a test figure of a result as a percentage."""
    return lambda result: 100 * result["test"][name]


def compare(results: Sequence[Result], methods: Sequence[str] = ()) -> Comparison:
    """Arrange results for tables and plots.

    results (Sequence[Result]): What read_results gives.
    methods (Sequence[str]): The order of the methods' names; others follow.
    RETURNS (Comparison): The arranged results.
    """
    order = {name: i for i, name in enumerate(methods)}
    ordered = sorted(results, key=lambda r: (order.get(r["method"], len(order)), r["encoder"]))
    several_encoders = len({result["encoder"] for result in results}) > 1
    cells: dict[tuple[str, str], list[Result]] = {}
    rows: dict[str, None] = {}
    for result in ordered:
        row = f"{result['title']} ({result['encoder']})" if several_encoders else result["title"]
        rows[row] = None
        cells.setdefault((row, result["corpus"]), []).append(result)
    masked = {result["corpus"]: result["masked"] for result in results}
    return Comparison(list(rows), sorted(masked, key=lambda c: (masked[c], c)), masked, cells)


def build_report(title: str, comparison: Comparison, figures: Sequence[Figure] = ()) -> Page:
    """Write the report of an experiment.

    title (str): The headline.
    comparison (Comparison): The results.
    figures (Sequence[Figure]): Drawings of the results, if there are any.
    RETURNS (Page): The page.
    """
    runs = [result for cell in comparison.cells.values() for result in cell]
    seeds = sorted({result["seed"] for result in runs})
    page = Page(title)
    page.add(
        Paragraph(
            f"{len(runs)} training runs: {len(comparison.rows)} methods on "
            f"{len(comparison.columns)} versions of the same training data, "
            f"{'seed' if len(seeds) == 1 else 'seeds'} {', '.join(map(str, seeds))}. In a masked "
            "version, that share of the entities has lost its label and looks like ordinary text. "
            "Every run keeps the checkpoint that is best on the development data; all figures are "
            f"exact-span scores on {runs[0]['test']['documents']} fully annotated test documents."
        ),
        Paragraph(_finding(comparison)),
        Heading("F1 by share of masked entities"),
        *figures,
        _score_table(comparison, percent("f1")),
        Heading("Precision and recall"),
        Paragraph(
            "Each cell is precision / recall. What a model learned to overlook is missing in its "
            "recall."
        ),
        _precision_recall_table(comparison),
        Heading("F1 by label"),
        *_label_tables(comparison),
        Heading("Cost"),
        _cost_table(comparison),
        Heading("How to repeat"),
        _versions(runs),
    )
    return page


def _column_title(comparison: Comparison, column: str) -> str:
    share = comparison.masked[column]
    return "all labels" if share == 0 else f"{100 * share:.0f}% masked"


def _header(comparison: Comparison) -> list[str]:
    return ["method", *(_column_title(comparison, column) for column in comparison.columns)]


def _finding(comparison: Comparison) -> str:
    f1 = percent("f1")
    worst = comparison.columns[-1]
    scored = {row: score for row in comparison.rows if (score := comparison.score(row, worst, f1))}
    if len(scored) < 2:
        return "There are too few finished runs for a comparison."
    best, last = (
        max(scored, key=lambda r: scored[r].mean),
        min(scored, key=lambda r: scored[r].mean),
    )
    return (
        f"With {_column_title(comparison, worst)}, {best} reaches F1 {scored[best]} and {last} "
        f"{scored[last]}."
    )


def _score_table(comparison: Comparison, figure: Callable[[Result], float | None]) -> Table:
    scores = [
        [comparison.score(row, column, figure) for column in comparison.columns]
        for row in comparison.rows
    ]
    best = set()
    for j in range(len(comparison.columns)):
        ranked = [(score.mean, i) for i, row in enumerate(scores) if (score := row[j]) is not None]
        if len(ranked) > 1:
            best.add((max(ranked)[1], j + 1))
    rows = [
        [title, *("–" if score is None else str(score) for score in row)]
        for title, row in zip(comparison.rows, scores, strict=True)
    ]
    return Table(_header(comparison), rows, frozenset(best))


def _precision_recall_table(comparison: Comparison) -> Table:
    rows = []
    for row in comparison.rows:
        cells = []
        for column in comparison.columns:
            precision = comparison.score(row, column, percent("precision"))
            recall = comparison.score(row, column, percent("recall"))
            cells.append("–" if precision is None or recall is None else f"{precision} / {recall}")
        rows.append([row, *cells])
    return Table(_header(comparison), rows)


def _label_tables(comparison: Comparison) -> list[Heading | Paragraph | Table]:
    labels = sorted(
        {
            label
            for runs in comparison.cells.values()
            for result in runs
            for label, figures in result["test"]["per_label"].items()
            if figures["gold"]
        }
    )

    def label_f1(label: str) -> Callable[[Result], float | None]:
        def read(result: Result) -> float | None:
            figures = result["test"]["per_label"].get(label)
            return None if figures is None else 100 * figures["f1"]

        return read

    blocks: list[Heading | Paragraph | Table] = []
    for column in comparison.columns:
        rows = []
        for row in comparison.rows:
            scores = (comparison.score(row, column, label_f1(label)) for label in labels)
            rows.append([row, *("–" if score is None else str(score) for score in scores)])
        blocks += [
            Paragraph(f"Trained with {_column_title(comparison, column)}:"),
            Table(["method", *labels], rows),
        ]
    return blocks


def _cost_table(comparison: Comparison) -> Table:
    def mean_over_runs(row: str, read: Callable[[Result], float | None]) -> str:
        values = [
            value
            for column in comparison.columns
            for result in comparison.cells.get((row, column), [])
            if (value := read(result)) is not None
        ]
        return f"{mean(values):,.0f}" if values else "–"

    rows = [
        [
            row,
            mean_over_runs(row, lambda r: r["training_seconds"]),
            mean_over_runs(row, lambda r: r["peak_bytes"] and r["peak_bytes"] / 2**20),
            mean_over_runs(row, lambda r: r["test"]["tokens_per_second"]),
        ]
        for row in comparison.rows
    ]
    header = ["method", "training (s)", "peak memory (MiB)", "inference (tokens/s)"]
    return Table(header, rows)


def _versions(runs: Sequence[Result]) -> Paragraph:
    versions = runs[0]["fingerprint"]["versions"]
    named = ", ".join(f"{package} {number}" for package, number in versions.items())
    threads = runs[0]["threads"]
    return Paragraph(
        f"Versions: {named}; {threads} CPU {'thread' if threads == 1 else 'threads'} a run. Each "
        "run's directory holds its log, its best pipeline, and `result.json` with hashes of its "
        "config and corpora."
    )
