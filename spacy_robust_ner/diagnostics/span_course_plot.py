"""The drawing of entity probabilities in the course of training."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING

from .plots import COLOURS, legend_beside, line_style, new_panels, save_drawing
from .span_course import LABELED, MISSAMPLED, NEGATIVES, UNLABELED, SpanCourse
from .sparsity_plot import check_drawable

if TYPE_CHECKING:
    from .plots import Axes

_GROUPS = {
    LABELED: (COLOURS[3], "o", "-"),
    UNLABELED: (COLOURS[1], "s", "-"),
    MISSAMPLED: (COLOURS[5], "^", "--"),
    NEGATIVES: (COLOURS[0], "D", "-"),
}
_MOST_MENTIONS = 20


def draw_span_course(courses: Mapping[str, SpanCourse], path: Path) -> None:
    """Draw the median of each group of spans with the range of the middle half, one panel for each
    training. Texts that were followed stand in a second row: a thick line for the mean of their
    mentions, and thin ones for the first mentions.

    courses (Mapping[str, SpanCourse]): The stages of each training, by name.
    path (Path): The file to write; its ending says the format.
    """
    check_drawable(path)
    with_texts = any(course.texts for course in courses.values())
    count = len(courses)
    canvas, panels = new_panels(count * (2 if with_texts else 1), columns=count)
    for axes, (name, course) in zip(panels, courses.items(), strict=False):
        _draw_groups(axes, course)
        axes.set_title(name, fontsize=10)
    if with_texts:
        for axes, course in zip(panels[count:], courses.values(), strict=True):
            _draw_texts(axes, course)
    for axes in panels[-count:]:
        axes.set_xlabel("completed epochs")
    for axes in panels[::count]:
        axes.set_ylabel("probability of an entity")
        axes.set_ylim(-0.03, 1.03)
    legend_beside(canvas, panels)
    save_drawing(canvas, path)


def _draw_groups(axes: Axes, course: SpanCourse) -> None:
    for name, (colour, marker, dashes) in _GROUPS.items():
        stages = [stage for stage in course.stages if name in stage.groups]
        epochs = [stage.epochs for stage in stages]
        quantiles = [stage.groups[name].quantiles for stage in stages]
        if stages:
            axes.plot(
                epochs,
                [values[2] for values in quantiles],
                color=colour,
                marker=marker,
                linestyle=dashes,
                markersize=4,
                label=name.replace(" that ", "\nthat "),
            )
            lows, highs = [v[1] for v in quantiles], [v[3] for v in quantiles]
            axes.fill_between(epochs, lows, highs, color=colour, alpha=0.15, linewidth=0)


def _draw_texts(axes: Axes, course: SpanCourse) -> None:
    epochs = [stage.epochs for stage in course.stages]
    for i, text in enumerate(course.texts, 1):
        mentions = [stage.texts[text] for stage in course.stages]
        style = line_style(i)
        axes.plot(epochs, [mean(values) for values in mentions], label=f'"{text}"', **style)
        for number in range(min(_MOST_MENTIONS, len(mentions[0]))):
            values = [values[number] for values in mentions]
            axes.plot(epochs, values, color=style["color"], linewidth=0.5, alpha=0.5)
