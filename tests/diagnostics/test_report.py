import json
import random
import re

import pytest
from made_runs import make_prediction, write_experiment, write_run
from typer.testing import CliRunner

from spacy_robust_ner.cli import app
from spacy_robust_ner.cli.report import write_report
from spacy_robust_ner.diagnostics.comparison import arrange
from spacy_robust_ner.diagnostics.error_browser import PASSAGES
from spacy_robust_ner.diagnostics.page import Details, Figure, Heading, Html, Page, Paragraph, Table
from spacy_robust_ner.diagnostics.results import read_runs


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    runs = write_experiment(folder / "runs", rates=(0.0, 0.8), documents=60)
    for value in (0.1, 0.5):
        predictions = [make_prediction(random.Random(i), "test", recall=value) for i in range(20)]
        write_run(
            runs,
            predictions,
            dataset="weibo",
            mask_rate=0.7,
            method="two-step-crf",
            variant="two-step-crf" if value == 0.5 else "two-step-crf-small",
            overrides={"components.robust_token_tagger.two_step.share": value},
        )
    page = write_report("Made <runs>", arrange(read_runs(runs)), folder, unfinished=["lost"])
    return folder, page


def test_tables_of_the_report(written):
    text = (written[0] / "report.md").read_text(encoding="utf8")
    results = read_runs(written[0] / "runs")
    scores = [100 * run.f1 for run in results if run.result["method"] == "token-ratio"]
    clean = f"{sum(scores[:2]) / 2:.1f} ± {abs(scores[0] - scores[1]) / 2**0.5:.1f}"
    assert re.search(rf"\| TOKEN-RATIO \| \**{clean}\** \| \*\*.* ± .*\*\* \|", text)
    assert re.search(r"\| SPAN-ALL \| reference \| reference \|", text)
    assert re.search(r"\| SPAN-NS \| .*\] \| ▲ \+.* \[\+.*, \+.*\] \|", text)
    assert re.search(
        r"\nWith 80% masked, TOKEN-RATIO reaches F1 \d+\.\d ± \d+\.\d, and the naive model of its "
        r"kind, TOKEN-CRF, \d+\.\d ± \d+\.\d\.\n",
        text,
    )
    assert "1 run of the experiment failed or did not run yet" in text
    assert re.search(r"\| TWO-STEP-CRF \| 70% masked, test \| \d.* \| cnn \| 61.19 \| LEBERT", text)
    assert re.search(r"\| TOKEN-RATIO \| 11 \| ×0.61 \| 1,024 \| 1,000 \|", text)


@pytest.mark.parametrize(
    ("recalls", "finding"),
    [
        ({"ner": 0.5}, "There are too few finished runs for a comparison."),
        (
            {"ner": 1.0, "span-all": 0.5},
            "NER reaches F1 {ner}, and nothing is better than this naive model.",
        ),
        (
            {"ner": 0.1, "span-all": 0.2, "span-ns": 1.0, "partial-crf": 0.01},
            "SPAN-NS reaches F1 {span-ns}, and the naive model of its kind, SPAN-ALL, {span-all}.",
        ),
        (
            {"span-ns": 0.5, "partial-crf": 1.0},
            "PARTIAL-CRF reaches F1 {partial-crf} and SPAN-NS {span-ns}.",
        ),
    ],
)
def test_finding(tmp_path, recalls, finding):
    scores = {}
    for method, recall in recalls.items():
        rng = random.Random(method)
        predictions = [make_prediction(rng, "test", recall=recall) for _ in range(50)]
        result = write_run(tmp_path / "runs", predictions, method=method)
        scores[method] = f"{100 * result['test']['f1']:.1f}"
    page = write_report("T", arrange(read_runs(tmp_path / "runs")), tmp_path)
    texts = [block.text for block in page.blocks if isinstance(block, Paragraph)]
    for method, score in scores.items():
        finding = finding.replace(f"{{{method}}}", score)
    assert texts[1].removeprefix("With no masking, ") == finding


def test_only_our_own_figures_can_be_best(written):
    for block in written[1].blocks:
        if isinstance(block, Table) and "F1 published" in block.header:
            assert block.best == frozenset()
            return
    raise AssertionError("no published figures")


def test_pictures_of_the_report(written):
    folder, _ = written
    names = {path.stem for path in folder.glob("*.png")}
    assert names == {
        "f1-by-masking-made-cnn",
        "f1-by-epoch-made-cnn",
        "reliability-made-cnn",
        "f1-by-method-weibo-cnn",
        "reliability-weibo-cnn",
        "sensitivity-weibo-cnn-two-step-crf-components.robust-token-tagger.two-step.share",
    }
    text = (folder / "report.md").read_text(encoding="utf8")
    assert {f"{name}.png" for name in names} == set(re.findall(r"\]\((.*?\.png)\)", text))


def test_report_is_the_same_each_time(written, tmp_path):
    folder, page = written
    (section,) = (s for s in arrange(read_runs(folder / "runs")) if s.dataset == "weibo")
    again = write_report("Another", [section], tmp_path)
    kept = [block for block in again.blocks if isinstance(block, Figure | Table)]
    assert len(kept) >= 8
    assert all(block in page.blocks for block in kept)


def test_data_of_the_error_browser(written):
    folder, _ = written
    text = (folder / "report.html").read_text(encoding="utf8")
    (block,) = re.findall(r'<script type="application/json" id="error-data">(.*?)</script>', text)
    assert "<" not in block
    data = json.loads(block)
    assert any("</script> " in words for words in data["texts"])
    results = read_runs(folder / "runs")
    firsts = [run for run in results if run.result["seed"] == 0]
    assert len(data["runs"]) == len(firsts)
    for shown in data["runs"]:
        assert shown["left"] == [0, 0]
        for number, _, before, after, marks in shown["items"]:
            assert (before, after) == (0, 0)
            assert any(data["kinds"][mark[4]] != "correct" for mark in marks)
            assert all(mark[2] <= len(data["texts"][number]) for mark in marks)
    ner = next(run for run in data["runs"] if run["name"] == "NER (seed 0)")
    wrong = [p for p in firsts[0].predictions() if p.masked or p.gold != set(p.predicted)]
    assert firsts[0].result["method"] == "ner"
    assert len(ner["items"]) == len(wrong)


def test_error_browser_says_what_it_left_out(tmp_path):
    words = [{"words": [str(i), "x"], "spaces": [True, False]} for i in range(PASSAGES + 30)]
    lines = [{**w, "split": "test", "gold": [[0, 1, "A"]], "masked": []} for w in words]
    write_run(tmp_path / "runs", [{**line, "predicted": []} for line in lines])
    write_report("T", arrange(read_runs(tmp_path / "runs")), tmp_path)
    text = (tmp_path / "report.html").read_text(encoding="utf8")
    assert "30 more were left out" in text
    assert '"left":[30,0]' in text
    assert text.count('"texts":[["') == 1


def test_runs_without_predictions_histories_or_pictures(tmp_path):
    write_run(tmp_path / "runs", [])
    sections = arrange(read_runs(tmp_path / "runs"))
    page = write_report("T", sections, tmp_path)
    titles = [block.text for block in page.blocks if isinstance(block, Heading)]
    assert titles == [
        "made, cnn",
        "F1",
        "Precision and recall",
        "F1 by label",
        "Cost",
        "How to repeat",
    ]


MATRIX = """
title: Two methods
datasets:
  - {name: made, train: a.spacy, dev: b.spacy, test: c.spacy}
masking: [0, 0.8]
methods: [ner, token-ratio, biaffine]
seeds: [0, 1]
"""


def test_command(written, tmp_path):
    matrix = tmp_path / "two.yml"
    matrix.write_text(MATRIX, encoding="utf8")
    result = CliRunner().invoke(
        app, ["report", str(matrix), str(written[0] / "runs"), str(tmp_path / "new")]
    )
    assert result.exit_code == 0, result.output
    assert "4 runs are not finished" in result.output
    assert "TOKEN-RATIO" in result.output
    text = (tmp_path / "new" / "report.md").read_text(encoding="utf8")
    assert text.startswith("# Two methods\n")
    assert "SPAN-NS" not in text
    for other in ([str(tmp_path)], [str(written[0] / "runs"), "--encoder", "bilstm"]):
        nothing = CliRunner().invoke(app, ["report", str(matrix), *other, str(tmp_path)])
        assert nothing.exit_code == 1
        assert "[R204]" in nothing.output


def test_page_escapes_and_marks_code(tmp_path):
    page = Page("<A> & b")
    page.add(
        Heading("1 < 2 * 3"),
        Paragraph("use `a<b>*` not _x_ nor a_b"),
        Details("more > less", [Table(["x", "y"], [["p|q", "<q>"]], frozenset({(0, 1)}))]),
        Html("<hr>", style="hr { color: red }", script="let x = 1;", markdown="A line."),
    )
    page.write_html(tmp_path / "page.html")
    page.write_markdown(tmp_path / "page.md")
    text = (tmp_path / "page.html").read_text(encoding="utf8")
    assert "<h1>&lt;A&gt; &amp; b</h1>" in text
    assert '<h2 id="1-2-3">1 &lt; 2 * 3</h2>' in text
    assert '<a href="#1-2-3">' in text
    assert "<code>a&lt;b&gt;*</code>" in text
    assert '<td class="best">&lt;q&gt;</td>' in text
    assert "<summary>more &gt; less</summary>" in text
    assert "hr { color: red }" in text
    assert "<script>let x = 1;</script>" in text
    text = (tmp_path / "page.md").read_text(encoding="utf8")
    assert "# &lt;A> & b\n" in text
    assert "## 1 &lt; 2 \\* 3\n" in text
    assert "use `a<b>*` not \\_x\\_ nor a_b" in text
    assert "| p\\|q | **&lt;q>** |" in text
    assert text.endswith("A line.\n")
