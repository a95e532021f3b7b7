"""The runs of an experiment, arranged for tables and plots."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import mean, stdev

from ..recipes import METHODS
from .results import Masking, Result, Run

# Reads a figure of a result.
FigureOf = Callable[[Result], float | None]
# The model that trusts every unlabeled token or span, by family of methods, in order of preference.
_NAIVE = {
    "span": ("span-all", "ner"),
    "token": ("token-crf", "token-softmax", "ner"),
    "baseline": ("ner",),
}


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

    @classmethod
    def of(cls, figures: Iterable[float | None]) -> "Score | None":
        """figures (Iterable[Optional[float]]): The figure of each run, if the run has it.
        RETURNS (Optional[Score]): Mean and deviation, or None if no run has it.
        """
        values = [value for value in figures if value is not None]
        if not values:
            return None
        return cls(mean(values), stdev(values) if len(values) > 1 else 0.0, len(values))

    def __str__(self) -> str:
        spread = f" ± {self.sd:.1f}" if self.seeds > 1 else ""
        return f"{self.mean:.1f}{spread}"


@dataclass(frozen=True)
class Row:
    """A method with its settings.

    method (str): The method's name.
    variant (str): The variant's name, unique in its section.
    title (str): What tables call it.
    """

    method: str
    variant: str
    title: str


@dataclass(frozen=True)
class Section:
    """Runs that can be compared: on one dataset, with one encoder.

    dataset (str): The dataset.
    encoder (str): The encoder.
    rows (List[Row]): The methods.
    columns (List[Masking]): The versions of the training data, from clean to most masked.
    cells (Dict[Tuple[Row, Masking], List[Run]]): The runs of each setting, one a seed.
    """

    dataset: str
    encoder: str
    rows: list[Row]
    columns: list[Masking]
    cells: dict[tuple[Row, Masking], list[Run]]

    @property
    def title(self) -> str:
        """RETURNS (str): The heading."""
        return f"{self.dataset}, {self.encoder}"

    def runs(self, row: Row, column: Masking) -> list[Run]:
        """RETURNS (List[Run]): The runs of a setting, by seed."""
        return self.cells.get((row, column), [])

    def score(self, row: Row, column: Masking, figure: FigureOf) -> Score | None:
        """RETURNS (Optional[Score]): A figure of a setting, or None if no run has it."""
        return Score.of(figure(run.result) for run in self.runs(row, column))

    def column_title(self, column: Masking) -> str:
        """RETURNS (str): What tables call a version of the training data."""
        if column.rate == 0:
            return "no masking"
        kinds = {other.kind for other in self.columns if other.rate}
        named = f" ({column.kind})" if len(kinds) > 1 and column.kind else ""
        return f"{100 * column.rate:.3g}% masked{named}"

    def naive(self, row: Row, column: Masking) -> Row | None:
        """RETURNS (Optional[Row]): The naive model of a method's family that has runs on the same
        data. A naive model is its own.
        """
        group = METHODS[row.method].group if row.method in METHODS else "baseline"
        for method in _NAIVE[group]:
            own = [
                other for other in self.rows if other.method == method and self.runs(other, column)
            ]
            if own:
                return next((other for other in own if other.variant == method), own[0])
        return None


def percent(name: str) -> FigureOf:
    """RETURNS (Callable): Reads a test figure of a result as a percentage."""
    return lambda result: 100 * result["test"][name]


def label_f1(label: str) -> FigureOf:
    """RETURNS (Callable): Reads the F1 of a label as a percentage; None if nothing has it."""

    def read(result: Result) -> float | None:
        figures = result["test"]["per_label"].get(label)
        return None if figures is None else 100 * figures["f1"]

    return read


def recovered_share(result: Result) -> float | None:
    """RETURNS (Optional[float]): The percentage of masked training entities that were found."""
    recovery = result["recovery"]
    if not recovery or not recovery["masked"]:
        return None
    return 100 * float(recovery["recovered"]) / float(recovery["masked"])


def arrange(runs: Sequence[Run], order: Sequence[str] = ()) -> list[Section]:
    """Arrange runs by dataset and encoder.

    runs (Sequence[Run]): The runs.
    order (Sequence[str]): The order of their names, which becomes the order of sections and rows;
        others follow.
    RETURNS (List[Section]): The sections.
    """
    place = {name: i for i, name in enumerate(order)}
    ordered = sorted(runs, key=lambda run: place.get(run.result["cell"], len(place)))
    groups: dict[tuple[str, str], list[Run]] = {}
    for run in ordered:
        groups.setdefault((run.result["dataset"], run.result["encoder"]), []).append(run)
    return [_section(dataset, encoder, own) for (dataset, encoder), own in groups.items()]


def _section(dataset: str, encoder: str, runs: Sequence[Run]) -> Section:
    titles = {(run.result["variant"], run.result["title"]) for run in runs}
    names = [title for _, title in titles]
    rows: dict[str, Row] = {}
    cells: dict[tuple[Row, Masking], list[Run]] = {}
    for run in runs:
        variant, title = run.result["variant"], run.result["title"]
        if variant not in rows:
            shown = title if names.count(title) == 1 else f"{title} [{variant}]"
            rows[variant] = Row(run.result["method"], variant, shown)
        cells.setdefault((rows[variant], run.masking), []).append(run)
    for own in cells.values():
        own.sort(key=lambda run: run.result["seed"])
    columns = {masking for _, masking in cells}
    return Section(
        dataset=dataset,
        encoder=encoder,
        rows=list(rows.values()),
        columns=sorted(columns, key=lambda column: (column.rate, column.kind or "")),
        cells=cells,
    )
