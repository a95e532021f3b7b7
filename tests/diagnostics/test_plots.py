import pytest

from spacy_robust_ner.diagnostics.plots import legend_beside, line_style, new_panels

agg = pytest.importorskip("matplotlib.backends.backend_agg")


@pytest.mark.parametrize("lines", [2, 24, 40])
@pytest.mark.parametrize("title", ["", "sampler"])
def test_legends_fit_into_the_drawing(lines, title):
    canvas, panels = new_panels(1)
    height = canvas.get_figheight()
    for number in range(lines):
        panels[0].plot([0, 1], [0, number], label=f"method {number}", **line_style(number))
    legend_beside(canvas, panels, title=title)
    agg.FigureCanvasAgg(canvas).draw()
    (legend,) = canvas.legends
    assert len(legend.get_texts()) == lines
    box = legend.get_window_extent()
    assert box.y0 >= 0
    assert box.y1 <= canvas.bbox.height
    assert box.x1 <= canvas.bbox.width
    assert (canvas.get_figheight() > height) == (lines > 2)
