"""Drawings of missampling, with what theory says of uniform sampling."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .missampling_report import MissamplingReport, SamplerMissampling, clean_bound
from .plots import legend_beside, line_style, new_canvas, new_panels, save_drawing
from .sparsity_plot import check_drawable

if TYPE_CHECKING:
    from .plots import Axes

_THEORY: dict[str, Any] = {"linestyle": "--", "linewidth": 1, "alpha": 0.8}
_BOUND: dict[str, Any] = {"linestyle": ":", "linewidth": 1.5}
_GREY = "#5b6875"


def draw_missampling(report: MissamplingReport, path: Path, *, title: str = "") -> None:
    """Draw by the length of the documents how many negatives of each sampler are unlabeled
    entities, and how many samples are clean of them. The legend says the rate over the whole
    corpus with its standard deviation.

    report (MissamplingReport): The figures.
    path (Path): The file to write; its ending says the format.
    title (str): What stands above.
    """
    check_drawable(path)
    canvas, (rates, clean) = new_panels(2, share_axes=False, panel_width=4.2)
    for i, sampler in enumerate(report.samplers):
        style = line_style(i + 1)
        label = f"{sampler.name}: {100 * sampler.mean:.2f} ± {100 * sampler.sd:.2f}"
        lengths = [(item.low + item.high) / 2 for item in sampler.by_length]
        theory = {"color": style["color"], **_THEORY}
        rates.plot(lengths, [100 * item.rate for item in sampler.by_length], label=label, **style)
        rates.plot(lengths, [100 * item.rate_if_uniform for item in sampler.by_length], **theory)
        clean.plot(lengths, [100 * item.clean for item in sampler.by_length], label=label, **style)
        clean.plot(lengths, [100 * item.clean_if_uniform for item in sampler.by_length], **theory)
    _draw_bounds(clean, report)
    rates.plot([], [], color=_GREY, label="expected of uniform sampling", **_THEORY)
    rates.set_ylabel("missampling rate (%)")
    clean.set_ylabel("samples without an unlabeled entity (%)")
    clean.set_ylim(-3, 103)
    rates.set_ylim(bottom=0)
    for axes in (rates, clean):
        axes.set_xlabel("tokens in the document")
    canvas.suptitle(title)
    legend_beside(canvas, [rates, clean], title="sampler: rate over the corpus (%)")
    save_drawing(canvas, path)


def draw_missampling_by_masking(reports: Mapping[float, MissamplingReport], path: Path) -> None:
    """Draw the missampling rate of each sampler by the share of masked entities, with what is to
    be expected of uniform sampling (Li et al. 2022, figures 4 and 5).

    reports (Mapping[float, MissamplingReport]): The figures at each share.
    path (Path): The file to write; its ending says the format.
    """
    check_drawable(path)
    canvas, axes = new_canvas()
    names = list(dict.fromkeys(s.name for report in reports.values() for s in report.samplers))
    for i, name in enumerate(names):
        points: list[tuple[float, SamplerMissampling]] = [
            (share, sampler)
            for share, report in sorted(reports.items())
            for sampler in report.samplers
            if sampler.name == name
        ]
        shares = [100 * share for share, _ in points]
        style = line_style(i + 1)
        axes.errorbar(
            shares,
            [100 * sampler.mean for _, sampler in points],
            yerr=[100 * sampler.sd for _, sampler in points],
            label=name,
            capsize=3,
            **style,
        )
        expected = [100 * sampler.mean_if_uniform for _, sampler in points]
        axes.plot(shares, expected, color=style["color"], **_THEORY)
    axes.plot([], [], color=_GREY, label="expected of\nuniform sampling", **_THEORY)
    axes.set_xlabel("masked entities (%)")
    axes.set_ylabel("missampling rate (%)")
    axes.set_ylim(bottom=0)
    legend_beside(canvas, [axes], title="sampler")
    save_drawing(canvas, path)


def _draw_bounds(axes: Axes, report: MissamplingReport) -> None:
    """The theory's lower bound for each rate of a sampler, over all lengths."""
    longest = max((item.high for s in report.samplers for item in s.by_length), default=1)
    lengths = range(1, longest + 1)
    drawn = set()
    for i, sampler in enumerate(report.samplers):
        rate = sampler.rate
        if rate is not None and rate not in drawn and sampler.by_length:
            drawn.add(rate)
            bound = [100 * clean_bound(rate, length) for length in lengths]
            colour = line_style(i + 1)["color"]
            axes.plot(lengths, bound, color=colour, label=f"theory's bound, λ = {rate:g}", **_BOUND)
