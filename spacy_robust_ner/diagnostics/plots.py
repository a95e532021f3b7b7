"""Drawings. The only user of matplotlib, which the extra ``plots`` installs."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from ..errors import Errors
from .page import Figure
from .report import Comparison, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

# Okabe and Ito's palette, which stays distinct for colour-blind readers.
_COLOURS = ("#000000", "#999999", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_MARKERS = "osD^vP*X"


def new_canvas(width: float = 7.5, height: float = 4.2) -> tuple[Canvas, Axes]:
    """Make an empty drawing without touching the user's matplotlib state.

    RETURNS (Tuple[Canvas, Axes]): The drawing and its axes.
    """
    try:
        from matplotlib.figure import Figure as Canvas
    except ImportError as error:
        raise ImportError(Errors.R205) from error
    canvas = Canvas(figsize=(width, height), layout="constrained")
    axes = canvas.subplots()
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#dde3ea")
    axes.set_axisbelow(True)
    return canvas, axes


def as_figure(canvas: Canvas, *, name: str, caption: str) -> Figure:
    """Render a drawing for a page.

    canvas (Canvas): The drawing.
    name (str): The name of its file, without a suffix.
    caption (str): What it shows.
    RETURNS (Figure): The drawing as SVG and PNG.
    """
    svg, png = io.StringIO(), io.BytesIO()
    canvas.savefig(svg, format="svg", metadata={"Date": None})
    canvas.savefig(png, format="png", dpi=150)
    drawing = svg.getvalue()
    # An inline drawing starts at its <svg> element; what stands before is for files of its own.
    return Figure(name, drawing[drawing.index("<svg") :], png.getvalue(), caption)


def f1_by_masking(comparison: Comparison) -> Figure:
    """Draw how F1 falls as more entities lose their labels, one line a method.

    comparison (Comparison): The results of an experiment.
    RETURNS (Figure): The drawing.
    """
    canvas, axes = new_canvas()
    for i, row in enumerate(comparison.rows):
        points = [
            (100 * comparison.masked[column], score)
            for column in comparison.columns
            if (score := comparison.score(row, column, percent("f1"))) is not None
        ]
        axes.errorbar(
            [x for x, _ in points],
            [score.mean for _, score in points],
            yerr=[score.sd for _, score in points],
            label=row,
            color=_COLOURS[i % len(_COLOURS)],
            marker=_MARKERS[i % len(_MARKERS)],
            linestyle="--" if row.startswith("spaCy") else "-",
            capsize=3,
        )
    axes.set_xlabel("entities without a label in the training data (%)")
    axes.set_ylabel("test F1")
    axes.set_xticks(sorted({100 * share for share in comparison.masked.values()}))
    axes.set_ylim(bottom=0)
    axes.legend(loc="lower left", frameon=False)
    return as_figure(
        canvas,
        name="f1_by_masking",
        caption="Test F1 by the share of entities that have lost their label in the training data",
    )
