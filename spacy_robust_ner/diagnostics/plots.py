"""Drawings. The only user of matplotlib, which the extra ``plots`` installs."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import Errors
from .page import Figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
    from matplotlib.figure import Figure as Canvas

# Okabe and Ito's palette, which stays distinct for colour-blind readers; its yellow is too pale.
COLOURS = ("#000000", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#999999")
_MARKERS = "osD^vP*X"
_DASHES = ("-", "--", ":", "-.")
_LEGEND_SIZE = 9
# A line of a legend with the space that matplotlib leaves below it.
_LEGEND_LINE_INCHES = 1.65 * _LEGEND_SIZE / 72


def new_canvas(width: float = 7.5, height: float = 4.2) -> tuple[Canvas, Axes]:
    """Make an empty drawing without touching the user's matplotlib state.

    RETURNS (Tuple[Canvas, Axes]): The drawing and its axes.
    """
    canvas, (axes,) = new_panels(1, width=width, height=height)
    return canvas, axes


def new_panels(
    count: int,
    *,
    columns: int = 3,
    width: float | None = None,
    height: float | None = None,
    panel_width: float = 3.1,
    share_axes: bool = True,
) -> tuple[Canvas, list[Axes]]:
    """Make an empty drawing of several panels.

    count (int): How many panels.
    columns (int): How many of them in a row.
    width (Optional[float]): Inches; by the number of panels if not given.
    height (Optional[float]): Inches; by the number of panels if not given.
    panel_width (float): Inches of a panel, if the width is not given.
    share_axes (bool): Whether all panels have the same range.
    RETURNS (Tuple[Canvas, List[Axes]]): The drawing and its panels.
    """
    try:
        from matplotlib.figure import Figure as Canvas
    except ImportError as error:
        raise ImportError(Errors.R205) from error
    columns = min(count, columns)
    rows = math.ceil(count / columns)
    size = (width or 2.2 + panel_width * columns, height or 0.7 + (panel_width - 0.2) * rows)
    canvas = Canvas(figsize=size, layout="constrained")
    grid = canvas.subplots(rows, columns, sharex=share_axes, sharey=share_axes, squeeze=False)
    panels = list(grid.flat)
    for extra in panels[count:]:
        extra.set_visible(False)
    # A panel above an empty place has no other that shows its axis.
    for axes in panels[max(0, count - columns) : count]:
        axes.tick_params(labelbottom=True)
    for axes in panels[:count]:
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", color="#dde3ea")
        axes.set_axisbelow(True)
    return canvas, panels[:count]


def line_style(number: int) -> dict[str, Any]:
    """RETURNS (Dict[str, Any]): Colour, marker and dashes of the lines of a drawing, by number:
    no two of the first 32 are alike, and neighbours differ in more than the colour.
    """
    return {
        "color": COLOURS[number % len(COLOURS)],
        "marker": _MARKERS[number % len(_MARKERS)],
        "linestyle": _DASHES[number // len(COLOURS) % len(_DASHES)],
        "markersize": 5,
        "linewidth": 1.5,
    }


def legend_beside(canvas: Canvas, panels: Sequence[Axes], *, title: str = "") -> None:
    """Put one legend for all panels to their right. The drawing grows if it is too low for it."""
    entries: dict[str, Any] = {}
    for axes in panels:
        handles, labels = axes.get_legend_handles_labels()
        entries.update(zip(labels, handles, strict=True))
    if entries:
        lines = len(entries) + bool(title) + 1
        canvas.set_figheight(max(canvas.get_figheight(), lines * _LEGEND_LINE_INCHES))
        canvas.legend(
            list(entries.values()),
            list(entries),
            loc="outside right upper",
            frameon=False,
            title=title or None,
            fontsize=_LEGEND_SIZE,
        )


def as_figure(canvas: Canvas, *, name: str, caption: str) -> Figure:
    """Render a drawing for a page.

    canvas (Canvas): The drawing.
    name (str): The name of its file, without a suffix.
    caption (str): What it shows.
    RETURNS (Figure): The drawing as SVG and PNG.
    """
    from matplotlib import rc_context

    svg, png = io.StringIO(), io.BytesIO()
    # Without a fixed salt two drawings of the same figures would differ.
    with rc_context({"svg.hashsalt": name}):
        canvas.savefig(svg, format="svg", metadata={"Date": None})
    canvas.savefig(png, format="png", dpi=150)
    return Figure(name, svg.getvalue(), png.getvalue(), caption)


def save_drawing(canvas: Canvas, path: Path) -> None:
    """Write a drawing.

    canvas (Canvas): The drawing.
    path (Path): The file; its ending says the format.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    canvas.savefig(path, dpi=150)
