"""The drawing of span vectors."""

from collections.abc import Mapping
from pathlib import Path
from textwrap import fill

import numpy as np

from ..pipeline.robust_pipe import OUTSIDE
from .plots import COLOURS, legend_beside, new_panels, save_drawing
from .projection import Projection
from .sparsity_plot import check_drawable

_MARKERS = "osD^vP*X"
# Characters that fit above a panel.
_TITLE_WIDTH = 55


def draw_projections(projections: Mapping[str, Projection], path: Path) -> None:
    """Draw one panel for each pipeline, with its own axes: the planes have nothing in common.

    projections (Mapping[str, Projection]): Span vectors, by the pipeline's name.
    path (Path): The file to write; its ending says the format.
    """
    check_drawable(path)
    canvas, panels = new_panels(len(projections), columns=2, share_axes=False, panel_width=4.2)
    labels = sorted({label for p in projections.values() for label in p.labels} - {OUTSIDE})
    for axes, (name, projection) in zip(panels, projections.items(), strict=True):
        own = np.array(projection.labels)
        for i, label in enumerate([OUTSIDE, *labels]):
            points = projection.points[own == label]
            axes.scatter(
                points[:, 0],
                points[:, 1],
                s=10 if label == OUTSIDE else 18,
                color="#b8c0c8" if label == OUTSIDE else COLOURS[i % len(COLOURS)],
                marker="o" if label == OUTSIDE else _MARKERS[i % len(_MARKERS)],
                alpha=0.7,
                linewidths=0,
                label="no entity" if label == OUTSIDE else label,
            )
        axes.set_title(
            f"{fill(name, _TITLE_WIDTH)}\nmean cosine: same label {projection.within:.2f}, other "
            f"{projection.between:.2f}, no entity {projection.to_outside:.2f}",
            fontsize=9,
        )
        axes.set_xlabel(f"{100 * projection.explained[0]:.0f}% of the variance")
        axes.set_ylabel(f"{100 * projection.explained[1]:.0f}% of the variance")
    legend_beside(canvas, panels)
    save_drawing(canvas, path)
