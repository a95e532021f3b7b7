"""Drawings of an experiment's results."""

import re
from collections.abc import Iterable, Mapping
from statistics import mean, stdev
from typing import Any

from .comparison import Row, Score, Section, percent
from .page import Figure
from .plots import COLOURS, as_figure, legend_beside, line_style, new_canvas, new_panels
from .reliability import Reliability
from .results import Masking, Run
from .sensitivity import Sensitivity

# Bins with fewer entities say too little to be drawn.
_FEWEST = 10


def file_name(*parts: str) -> str:
    """RETURNS (str): A name of a figure's file."""
    return "-".join(re.sub(r"[^a-z0-9.]+", "-", part.lower()).strip("-") for part in parts)


def f1_by_masking(section: Section) -> Figure:
    """Draw how F1 falls as more entities lose their labels, one line a method, one panel for each
    way of choosing the entities.

    section (Section): The runs.
    RETURNS (Figure): The drawing.
    """
    kinds = sorted({column.kind for column in section.columns if column.rate}, key=str) or [None]
    panels_of = [[c for c in section.columns if not c.rate or c.kind == kind] for kind in kinds]
    canvas, panels = new_panels(
        len(kinds), width=5.4 + 4.2 * len(kinds), height=max(4.4, 1.6 + 0.22 * len(section.rows))
    )
    for axes, kind, columns in zip(panels, kinds, panels_of, strict=True):
        for i, row in enumerate(section.rows):
            points = [
                (100 * column.rate, score)
                for column in columns
                if (score := section.score(row, column, percent("f1"))) is not None
            ]
            axes.errorbar(
                [x for x, _ in points],
                [score.mean for _, score in points],
                yerr=[score.sd for _, score in points],
                label=row.title,
                capsize=3,
                **line_style(i),
            )
        axes.set_xlabel("entities without a label in the training data (%)")
        axes.set_xticks(sorted({100 * column.rate for column in columns}))
        axes.set_ylim(bottom=0)
        if len(kinds) > 1:
            axes.set_title("as given" if kind is None else f"masked by {kind}")
    panels[0].set_ylabel("test F1")
    legend_beside(canvas, panels)
    return as_figure(
        canvas,
        name=file_name("f1-by-masking", section.dataset, section.encoder),
        caption=f"{section.title}: test F1 by the share of entities that have lost their label in "
        "the training data; bars are one standard deviation over seeds",
    )


def f1_by_method(section: Section) -> Figure:
    """Draw the F1 of each method where there is only one version of the training data.

    section (Section): The runs.
    RETURNS (Figure): The drawing.
    """
    (column,) = section.columns
    canvas, axes = new_canvas(height=1.2 + 0.3 * len(section.rows))
    scored = [
        (row.title, score)
        for row in reversed(section.rows)
        if (score := section.score(row, column, percent("f1"))) is not None
    ]
    axes.errorbar(
        [score.mean for _, score in scored],
        range(len(scored)),
        xerr=[score.sd for _, score in scored],
        fmt="o",
        color=COLOURS[1],
        capsize=3,
    )
    axes.set_yticks(range(len(scored)), [title for title, _ in scored])
    axes.set_xlabel("test F1")
    return as_figure(
        canvas,
        name=file_name("f1-by-method", section.dataset, section.encoder),
        caption=f"{section.title}: test F1 with {section.column_title(column)}; bars are one "
        "standard deviation over seeds",
    )


def f1_by_epoch(section: Section) -> Figure | None:
    """Draw dev F1 in the course of training, one panel for each version of the training data.

    section (Section): The runs.
    RETURNS (Optional[Figure]): The drawing, or None if no run kept the history of its training.
    """
    histories = {
        run.result["cell"]: history
        for runs in section.cells.values()
        for run in runs
        if (history := run.history())
    }
    if not histories:
        return None
    unit = "epoch" if all(map(_once_an_epoch, histories.values())) else "step"
    canvas, panels = new_panels(len(section.columns))
    for axes, column in zip(panels, section.columns, strict=True):
        for i, row in enumerate(section.rows):
            points: dict[int, list[float]] = {}
            for run in section.runs(row, column):
                for entry in histories.get(run.result["cell"], []):
                    points.setdefault(entry[unit], []).append(_dev_f1(entry))
            style = {**line_style(i), "markersize": 3}
            axes.plot(list(points), [mean(p) for p in points.values()], label=row.title, **style)
            lows = [mean(p) - _sd(p) for p in points.values()]
            highs = [mean(p) + _sd(p) for p in points.values()]
            axes.fill_between(list(points), lows, highs, color=style["color"], alpha=0.12, lw=0)
        axes.set_title(section.column_title(column), fontsize=10)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("epoch" if unit == "epoch" else "training step")
    panels[0].set_ylabel("dev F1")
    legend_beside(canvas, panels)
    return as_figure(
        canvas,
        name=file_name("f1-by-epoch", section.dataset, section.encoder),
        caption=f"{section.title}: dev F1 in the course of training, mean and standard deviation "
        "over seeds",
    )


def reliability_curves(
    section: Section, curves: Mapping[tuple[Row, Masking], Reliability]
) -> Figure | None:
    """Draw precision by probability, one panel for each version of the training data.

    section (Section): The runs.
    curves (Mapping): The figures of each setting whose entities have probabilities.
    RETURNS (Optional[Figure]): The drawing, or None if no entity has a probability.
    """
    if not any(curve.count for curve in curves.values()):
        return None
    canvas, panels = new_panels(len(section.columns))
    for axes, column in zip(panels, section.columns, strict=True):
        axes.plot([0, 1], [0, 1], color="#8b98a7", linewidth=1, linestyle=(0, (1, 1)))
        for i, row in enumerate(section.rows):
            curve = curves.get((row, column))
            if curve is not None:
                bins = [item for item in curve.bins if item.count >= _FEWEST]
                axes.plot(
                    [item.confidence for item in bins],
                    [item.precision for item in bins],
                    label=row.title,
                    **line_style(i),
                )
        axes.set_title(section.column_title(column), fontsize=10)
        axes.set_xlabel("probability of an entity")
        axes.set_ylim(-0.03, 1.03)
    panels[0].set_ylabel("precision")
    legend_beside(canvas, panels)
    return as_figure(
        canvas,
        name=file_name("reliability", section.dataset, section.encoder),
        caption=f"{section.title}: precision of predicted entities by their probability, in ten "
        f"bins of which those with fewer than {_FEWEST} entities are left out. On the diagonal "
        "probabilities can be taken at their word; above it the model is too modest.",
    )


def sensitivity_plot(section: Section, sensitivity: Sensitivity) -> Figure:
    """Draw F1 by the value of a setting, one line for each version of the training data.

    section (Section): The runs.
    sensitivity (Sensitivity): The setting.
    RETURNS (Figure): The drawing.
    """
    canvas, axes = new_canvas()
    values = sorted({value for line in sensitivity.lines.values() for value in line})
    for i, (column, line) in enumerate(sensitivity.lines.items()):
        points = [(value, _f1(runs)) for value, runs in sorted(line.items())]
        axes.errorbar(
            [value for value, _ in points],
            [score.mean for _, score in points],
            yerr=[score.sd for _, score in points],
            label=section.column_title(column),
            capsize=3,
            **line_style(i),
        )
    if values[0] > 0 and values[-1] / values[0] >= 20:
        axes.set_xscale("log")
        axes.minorticks_off()
    axes.set_xticks(values, [f"{value:g}" for value in values])
    axes.set_xlabel(sensitivity.setting)
    axes.set_ylabel("test F1")
    legend_beside(canvas, [axes])
    others = "".join(f", {name} = {value}" for name, value in sensitivity.others.items())
    return as_figure(
        canvas,
        name=file_name(
            "sensitivity",
            section.dataset,
            section.encoder,
            sensitivity.method,
            sensitivity.setting,
            *(f"{name}-{value}" for name, value in sensitivity.others.items()),
        ),
        caption=f"{section.title}, {sensitivity.title}{others}: test F1 by {sensitivity.setting}; "
        "bars are one standard deviation over seeds",
    )


def _f1(runs: Iterable[Run]) -> Score:
    score = Score.of(100 * run.f1 for run in runs)
    assert score is not None
    return score


def _sd(values: list[float]) -> float:
    return stdev(values) if len(values) > 1 else 0.0


def _once_an_epoch(history: list[dict[str, Any]]) -> bool:
    return len({entry["epoch"] for entry in history}) == len(history)


def _dev_f1(entry: dict[str, Any]) -> float:
    for name in ("ents_f", "spans_sc_f"):
        if name in entry["scores"]:
            f1: float = entry["scores"][name]
            return f1
    return 100 * float(entry["score"])
