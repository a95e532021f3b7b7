"""The drawing of missampling rates by sampler and by document length."""

from pathlib import Path

from .missampling_report import MissamplingReport
from .plots import new_canvas
from .sparsity_plot import check_drawable

_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")


def draw_missampling(report: MissamplingReport, path: Path, *, title: str = "") -> None:
    """Draw the missampling rate of each sampler by the length of the documents. The legend says
    the rate over the whole corpus with its standard deviation.

    report (MissamplingReport): The figures.
    path (Path): The file to write; its ending says the format.
    title (str): What stands above.
    """
    check_drawable(path)
    canvas, axes = new_canvas()
    for i, sampler in enumerate(report.samplers):
        classes = sampler.by_length
        axes.plot(
            [(item.low + item.high) / 2 for item in classes],
            [100 * item.rate for item in classes],
            marker="o",
            color=_COLOURS[i % len(_COLOURS)],
            label=f"{sampler.name}: {100 * sampler.mean:.2f} ± {100 * sampler.sd:.2f}",
        )
    axes.set_xlabel("tokens in the document")
    axes.set_ylabel("missampling rate (%)")
    axes.set_ylim(bottom=0)
    axes.set_title(title)
    axes.legend(loc="upper right", frameon=False, title="sampler: rate over the corpus (%)")
    path.parent.mkdir(parents=True, exist_ok=True)
    canvas.savefig(path, dpi=150)
