"""Drawings of O-values and of what removing low ones finds."""

from collections.abc import Sequence
from typing import Any

from .detection import SHARES, DetectionPoint
from .exploration import LABELED, OUTSIDE, UNLABELED, EpochValues
from .o_value_study import OValueStudy, Reading, Spread, precision_at, recall_at
from .page import Figure
from .plots import COLOURS, as_figure, legend_beside, line_style, new_panels

_GROUPS = {
    UNLABELED: ("unlabeled entities", COLOURS[2]),
    OUTSIDE: ("true O", COLOURS[1]),
    LABELED: ("labeled entities", COLOURS[7]),
}
_GREY = "#5b6875"
_PANEL_WIDTH = 3.8


def values_by_epoch(study: OValueStudy) -> Figure:
    """RETURNS (Figure): Mean O-values of the groups of tokens after each epoch, a panel for each
    method.
    """
    names, epochs = study.names, range(1, study.n_epochs + 1)
    canvas, panels = new_panels(len(names), columns=2, panel_width=_PANEL_WIDTH)
    for axes, name in zip(panels, names, strict=True):
        for group, (title, colour) in _GROUPS.items():
            if study.runs[0].epochs[0].groups[group] is None:
                continue
            means, low, high = (
                [study.figure(name, epoch, read).mean for epoch in epochs]
                for read in (_mean(group), _quantile(group, "0.25"), _quantile(group, "0.75"))
            )
            axes.plot(epochs, means, marker="o", markersize=4, color=colour, label=title)
            axes.fill_between(epochs, low, high, color=colour, alpha=0.15, linewidth=0)
        axes.set_title(name, fontsize=10)
        _label_epochs(axes)
    panels[0].set_ylabel("O-value of a token")
    legend_beside(canvas, panels)
    return as_figure(
        canvas,
        name="o-values-by-epoch",
        caption="Mean O-value of the tokens after each epoch; the bands hold the middle half of "
        "the tokens. What counts is the distance of the lines: each method has its own scale.",
    )


def separation_by_epoch(study: OValueStudy) -> Figure:
    """RETURNS (Figure): How far the groups are apart after each epoch, a line for each method."""
    readings: tuple[Reading, ...] = (
        lambda values: values.separation,
        lambda values: 100 * values.detection.auc,
    )
    canvas, panels = new_panels(2, panel_width=_PANEL_WIDTH, share_axes=False)
    for axes, read in zip(panels, readings, strict=True):
        _draw_by_epoch(axes, study, read)
    panels[0].set_ylabel("difference of the means\n(standard deviations of a token)")
    panels[0].axhline(0, color=_GREY, linestyle=":")
    panels[1].set_ylabel("unlabeled token has the lower\nO-value (% of pairs)")
    panels[1].axhline(50, color=_GREY, linestyle=":", label="by chance")
    legend_beside(canvas, panels)
    return as_figure(
        canvas,
        name="o-value-separation",
        caption="How far apart the O-values of unlabeled entities and of true O are after each "
        "epoch, on scales that are the same for all methods",
    )


def detection_by_share(study: OValueStudy) -> Figure:
    """RETURNS (Figure): Precision and recall by the share removed, a line for each method."""
    epoch = study.detection_epoch
    canvas, panels = new_panels(2, panel_width=_PANEL_WIDTH)
    first = study.runs[0].epochs[0].detection
    shares, base = [point.share for point in first.curve], first.base_rate
    percents = [100 * share for share in shares]
    best = [min(1.0, base / share) for share in shares], [min(1.0, s / base) for s in shares]
    by_chance = [base] * len(shares), shares
    for axes, quantity, most, least in zip(
        panels, ("precision", "recall"), best, by_chance, strict=True
    ):
        for i, name in enumerate(study.names):
            spreads = [
                study.figure(name, epoch, _on_curve(k, quantity)) for k in range(len(shares))
            ]
            _draw_line(axes, percents, spreads, name, i, markevery=(i, 6))
        for values, line, title in ((most, "-.", "best possible"), (least, ":", "by chance")):
            heights = [100 * value for value in values]
            axes.plot(percents, heights, color=_GREY, linestyle=line, label=title)
        axes.axvspan(100 * SHARES[0], 100 * SHARES[-1], color="#f2f4f7", zorder=0)
        axes.set_xscale("log")
        axes.set_xticks([0.1, 0.3, 1, 2.5, 10, 100], ["0.1", "0.3", "1", "2.5", "10", "100"])
        axes.minorticks_off()
        axes.set_xlabel("tokens removed (% of all marked O)")
        axes.set_ylabel(f"{quantity} (%)")
        axes.set_ylim(0, 103)
        axes.tick_params(labelleft=True)
    legend_beside(canvas, panels)
    return as_figure(
        canvas,
        name="detection-by-share",
        caption="Unlabeled tokens among the removed ones (precision) and removed ones among the "
        f"unlabeled tokens (recall) after epoch {epoch}, lowest O-values first. The shaded part "
        "has the shares that the paper tries.",
    )


def detection_by_epoch(study: OValueStudy, share: float) -> Figure:
    """study (OValueStudy): The runs.
    share (float): One of SHARES.
    RETURNS (Figure): Precision and recall at a share after each epoch, a line for each method.
    """
    canvas, panels = new_panels(2, panel_width=_PANEL_WIDTH)
    base = study.runs[0].epochs[0].detection.base_rate
    for axes, quantity, read, chance in zip(
        panels,
        ("precision", "recall"),
        (precision_at(share), recall_at(share)),
        (base, share),
        strict=True,
    ):
        _draw_by_epoch(axes, study, _percent(read))
        axes.axhline(100 * chance, color=_GREY, linestyle=":", label="by chance")
        axes.set_ylabel(f"{quantity} (%)")
        axes.set_ylim(bottom=0)
        axes.tick_params(labelleft=True)
    legend_beside(canvas, panels)
    return as_figure(
        canvas,
        name="detection-by-epoch",
        caption=f"Precision and recall with {share:.1%} of the tokens removed, by epochs of "
        "exploration",
    )


def _mean(group: str) -> Reading:
    return lambda values: values.mean(group)


def _quantile(group: str, quantile: str) -> Reading:
    def read(values: EpochValues) -> float:
        summary = values.groups[group]
        return float("nan") if summary is None else summary.quantiles[quantile]

    return read


def _percent(read: Reading) -> Reading:
    return lambda values: 100 * read(values)


def _on_curve(number: int, quantity: str) -> Reading:
    def read(values: EpochValues) -> float:
        point: DetectionPoint = values.detection.curve[number]
        return 100 * (point.precision if quantity == "precision" else point.recall)

    return read


def _label_epochs(axes: Any) -> None:
    axes.set_xlabel("epochs of exploration")
    axes.locator_params(axis="x", integer=True)


def _draw_by_epoch(axes: Any, study: OValueStudy, read: Reading) -> None:
    epochs = range(1, study.n_epochs + 1)
    for i, name in enumerate(study.names):
        spreads = [study.figure(name, epoch, read) for epoch in epochs]
        _draw_line(axes, list(epochs), spreads, name, i)
    _label_epochs(axes)


def _draw_line(
    axes: Any,
    xs: Sequence[float],
    spreads: Sequence[Spread],
    label: str,
    number: int,
    *,
    markevery: tuple[int, int] | None = None,
) -> None:
    """Draw a line over the means, with a band from the least to the greatest of all seeds."""
    style = line_style(number)
    means = [spread.mean for spread in spreads]
    low, high = ([getattr(spread, end) for spread in spreads] for end in ("low", "high"))
    axes.plot(xs, means, label=label, markevery=markevery, **style)
    axes.fill_between(xs, low, high, color=style["color"], alpha=0.15, linewidth=0)
