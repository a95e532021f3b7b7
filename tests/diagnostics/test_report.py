import pytest

from spacy_robust_ner.diagnostics.page import Heading, Page, Paragraph, Table
from spacy_robust_ner.diagnostics.report import build_report, compare, percent


def result(method, corpus, masked, seed, f1):
    figures = {"precision": f1, "recall": f1, "f1": f1, "gold": 10}
    return {
        "method": method,
        "title": method.upper(),
        "encoder": "cnn",
        "corpus": corpus,
        "masked": masked,
        "seed": seed,
        "threads": 1,
        "training_seconds": 10.0,
        "peak_bytes": 2**30,
        "test": {**figures, "per_label": {"PER": figures}, "documents": 5, "tokens_per_second": 9},
        "fingerprint": {"versions": {"spacy": "3.8"}},
    }


RESULTS = [
    result("b", "p50", 0.5, 0, 0.5),
    result("b", "p50", 0.5, 1, 0.7),
    result("b", "clean", 0.0, 0, 0.8),
    result("a", "clean", 0.0, 0, 0.9),
    result("a", "p50", 0.5, 0, 0.4),
]


def test_results_are_arranged_by_method_and_masking():
    comparison = compare(RESULTS, ["a", "b"])
    assert comparison.rows == ["A", "B"]
    assert comparison.columns == ["clean", "p50"]
    score = comparison.score("B", "p50", percent("f1"))
    assert score.mean == pytest.approx(60.0)
    assert score.sd == pytest.approx(14.142, abs=1e-3)
    assert str(score) == "60.0 ± 14.1"
    assert comparison.score("A", "p90", percent("f1")) is None


def test_report_marks_the_best_of_each_column(tmp_path):
    page = build_report("Title", compare(RESULTS, ["a", "b"]))
    page.write_markdown(tmp_path / "report.md")
    text = (tmp_path / "report.md").read_text(encoding="utf8")
    assert "| A | **90.0** | 40.0 |" in text
    assert "| B | 80.0 | **60.0 ± 14.1** |" in text
    assert "With 50% masked, B reaches F1 60.0 ± 14.1 and A 40.0." in text


def test_page_escapes_html_and_marks_code(tmp_path):
    page = Page("<A> & b")
    page.add(Heading("1 < 2"), Paragraph("use `a<b>`"), Table(["x", "y"], [["p", "<q>"]]))
    page.write_html(tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text(encoding="utf8")
    assert "<h1>&lt;A&gt; &amp; b</h1>" in text
    assert "<code>a&lt;b&gt;</code>" in text
    assert "<td>&lt;q&gt;</td>" in text
