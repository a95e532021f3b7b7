"""The drawing of entity counts against the square root of length."""

import importlib.util
import math
from collections.abc import Sequence
from pathlib import Path

from ..corpus.sparsity import SparsityPoint
from ..errors import Errors
from .plots import new_canvas

_SUFFIXES = (".png", ".svg", ".pdf")
_CURVE_STEPS = 500


def check_drawable(path: Path) -> None:
    """Raise an error, before any long work, if a drawing can't be made.

    path (Path): Where it is to go.
    """
    if importlib.util.find_spec("matplotlib") is None:
        raise ValueError(Errors.R205)
    if path.suffix.lower() not in _SUFFIXES:
        raise ValueError(Errors.R066.format(path=path, known=", ".join(_SUFFIXES)))


def draw_sparsity(points: Sequence[SparsityPoint], path: Path, *, title: str = "") -> None:
    """Draw the mean number of entities for each document length, with bars of one standard
    deviation to either side, and the square root of the length as a curve.

    points (Sequence[SparsityPoint]): The lengths to draw.
    path (Path): The file to write; its ending says the format.
    title (str): What stands above.
    """
    check_drawable(path)
    canvas, axes = new_canvas()
    axes.errorbar(
        [point.length for point in points],
        [point.mean for point in points],
        yerr=[point.deviation for point in points],
        fmt="o",
        markersize=4,
        color="#0072B2",
        ecolor="#9cc3de",
        label="entities: mean ± standard deviation",
    )
    longest = max((point.length for point in points), default=1)
    lengths = [longest * step / _CURVE_STEPS for step in range(_CURVE_STEPS + 1)]
    axes.plot(
        lengths,
        [math.sqrt(length) for length in lengths],
        color="#D55E00",
        label="square root of the length",
    )
    axes.set_xlabel("tokens in the document")
    axes.set_ylabel("entities")
    axes.set_ylim(bottom=0)
    axes.set_title(title)
    axes.legend(loc="upper left", frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    canvas.savefig(path, dpi=150)
