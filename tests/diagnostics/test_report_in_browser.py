"""The HTML report as a reader sees it: in a real browser, wide and narrow."""

import random

import pytest

pytest.importorskip("fcntl", reason="the browser is driven through POSIX pipes")

from chromium import Browser, find_chromium
from made_runs import make_prediction, write_run

from spacy_robust_ner.cli.report import write_report
from spacy_robust_ner.diagnostics.comparison import arrange
from spacy_robust_ner.diagnostics.error_browser import PASSAGES
from spacy_robust_ner.diagnostics.results import read_runs

pytestmark = pytest.mark.skipif(
    find_chromium() is None,
    reason="no Chromium found; install one (Debian: chromium) or name it in CHROMIUM",
)

WIDTHS = (1280, 400)
# Elements that stick out of the window, but for what may be scrolled in a frame of its own.
OVERFLOW = """
[...document.querySelectorAll("body *")]
  .filter((e) => !e.closest(".scroll > *") && !e.closest("option, optgroup"))
  .map((e) => [e, e.getBoundingClientRect()])
  .filter(([e, box]) => box.width && (box.right > window.innerWidth + 0.5 || box.left < -0.5))
  .map(([e, box]) => e.outerHTML.slice(0, 120) + " " + box.left + " " + box.right)
"""
COUNT = "Number(document.getElementById('error-status').textContent.split(' ')[0])"
SHOWN = "document.querySelectorAll('#error-list li').length"


def line(words, gold=(), predicted=(), masked=(), split="test"):
    return {
        "split": split,
        "words": words,
        "spaces": [len(word) > 1 or word.isascii() for word in words],
        "gold": [*gold, *masked],
        "masked": list(masked),
        "predicted": [[*entity, 0.75] for entity in predicted],
    }


STRANGE = [
    line(["دمشق", "هي", "عاصمة", "سوريا", "."], [[0, 1, "LOC"]], [[3, 4, "LOC"]]),
    line(
        [*"北京大学在北京市海淀区颐和园路五号" * 8], [[0, 4, "ORG"], [5, 8, "LOC"]], [[0, 2, "LOC"]]
    ),
    line(
        ["<img", "src=x", "onerror='document.title=1'>", "</script><b>", "&amp;"],
        [[0, 3, "<i>X</i>"]],
        [[0, 5, "<i>X</i>"]],
    ),
    line(["Donaudampfschifffahrtsgesellschaft" * 12, "sinkt"], [[0, 1, "ORG"]]),
    line(["x" * 300, "y"], [], [[0, 1, "AVERYLONGLABELNAME" * 4]]),
    line(["a", "\n", "b", "c"], [[0, 1, "PER"]], [[0, 3, "PER"], [2, 4, "PER"], [0, 4, "ORG"]]),
    line(["Rio", "met", "Ada"], [], [[0, 1, "LOC"]], [[0, 1, "LOC"], [2, 3, "PER"]], "train"),
]


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("browser")
    for method in ("ner", "span-all", "span-ns", "token-ratio"):
        for rate in (0.0, 0.5, 0.8, 0.9):
            rng = random.Random(f"{method}{rate}")
            predictions = [
                make_prediction(rng, split, recall=0.5, rate=rate)
                for split, count in (("test", 3 * PASSAGES), ("train", 100))
                for _ in range(count)
            ]
            write_run(
                folder / "runs",
                predictions,
                method=method,
                mask_rate=rate,
                history=[{"epoch": i, "step": i, "score": 0.1 * i, "scores": {}} for i in range(3)],
            )
    write_run(folder / "runs", STRANGE, dataset="weibo", mask_rate=0.5, method="two-step-crf")
    write_report(
        "Runs with a title that is rather long" * 3, arrange(read_runs(folder / "runs")), folder
    )
    return folder / "report.html"


@pytest.fixture(scope="module")
def browser():
    opened = Browser(find_chromium())
    yield opened
    opened.close()


def choose(browser, name, value):
    """Set a field of the form as a reader would."""
    browser.run(
        f"""(() => {{
          const field = document.forms["error-filters"].elements["{name}"];
          field.value = {value!r};
          field.dispatchEvent(new Event("input", {{bubbles: true}}));
        }})()"""
    )


def only(browser, *kinds):
    """Check these kinds of errors and no others."""
    browser.run(
        f"""document.querySelectorAll("input[name=kind]").forEach((box) => {{
          if (box.checked !== {list(kinds)!r}.includes(box.value)) box.click();
        }})"""
    )


def run_number(browser, group, name):
    return browser.run(
        f"""[...document.querySelectorAll("select[name=run] option")].find((option) =>
          option.parentElement.label.includes({group!r}) && option.text.includes({name!r})).value"""
    )


@pytest.mark.parametrize("width", WIDTHS)
def test_page_loads_without_errors_and_fits(browser, report, width, tmp_path):
    browser.open(report, width)
    assert browser.errors == []
    assert {url.split(":")[0] for url in browser.requests} <= {"file", "data"}
    assert sum(url.startswith("file") for url in browser.requests) == 1
    pictures = browser.run("[...document.images].map((image) => image.naturalWidth)")
    assert len(pictures) >= 4
    assert all(pictures)
    browser.run("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    assert browser.run(OVERFLOW) == []
    assert browser.run("document.documentElement.scrollWidth") <= width
    choose(browser, "run", run_number(browser, "weibo", "TWO-STEP"))
    assert browser.run(SHOWN) == len(STRANGE)
    assert browser.run(OVERFLOW) == []
    browser.screenshot(tmp_path / "page.png")
    assert (tmp_path / "page.png").stat().st_size > 10_000


def test_texts_stay_texts(browser, report):
    browser.open(report, 1280)
    title = browser.run("document.title")
    choose(browser, "run", run_number(browser, "weibo", "TWO-STEP"))
    assert (
        browser.run(
            "document.querySelectorAll('#error-list img, #error-list b, #error-list i').length"
        )
        == 0
    )
    assert browser.run("document.title") == title
    text = browser.run("document.getElementById('error-list').textContent")
    assert "<img src=x onerror='document.title=1'> </script><b> &amp;" in text
    assert "<i>X</i>" in text
    first = "document.querySelector('#error-list .words')"
    assert browser.run(f"getComputedStyle({first}).direction") == "rtl"
    directions = "[...document.querySelectorAll('#error-list .words')].map((e) => e.dir)"
    assert browser.run(directions)[:4] == ["rtl", "rtl", "ltr", "ltr"]


def test_filters(browser, report):
    browser.open(report, 1280)
    runs = {
        (r.result["method"], r.result["mask_rate"]): r for r in read_runs(report.parent / "runs")
    }
    choose(browser, "run", run_number(browser, "80%", "SPAN-NS"))
    assert browser.run(COUNT) == PASSAGES + 100 - missing_train(runs["span-ns", 0.8])
    status = browser.run("document.getElementById('error-status').textContent")
    assert "left out of this run:" in status
    assert "of the test text" in status
    train = [p for p in runs["span-ns", 0.8].predictions() if p.split == "train"]
    only(browser, "recovered")
    found = sum(bool(p.masked & p.predicted.keys()) for p in train)
    assert browser.run(COUNT) == found > 0
    number = "[...document.querySelectorAll('input[value=recovered] ~ .number')][0].textContent"
    assert browser.run(number) == f"({found})"
    assert browser.run("document.querySelectorAll('#error-list .split').length") == min(25, found)
    options = "[...document.querySelectorAll('select[name=label] option')]"
    choose(browser, "label", browser.run(f"{options}.find((o) => o.text === 'LOC').value"))
    loc = sum(any(e[2] == "LOC" for e in p.masked & p.predicted.keys()) for p in train)
    assert browser.run(COUNT) == loc < found
    choose(browser, "text", "  new YORK ")
    both = sum(
        "New York" in " ".join(p.words)
        and any(e[2] == "LOC" for e in p.masked & p.predicted.keys())
        for p in train
    )
    assert browser.run(COUNT) == both < loc
    shown = browser.run(
        "[...document.querySelectorAll('#error-list li')].map((e) => e.textContent)"
    )
    assert all("New York" in text and "★ recovered" in text for text in shown)
    choose(browser, "text", "no such text")
    assert (browser.run(COUNT), browser.run(SHOWN)) == (0, 0)
    assert browser.errors == []


def missing_train(run):
    """Training documents without anything to see."""
    return sum(
        p.split == "train" and not p.masked and p.gold == set(p.predicted)
        for p in run.predictions()
    )


@pytest.mark.parametrize("kind", ["missed", "spurious", "wrong label", "wrong boundaries"])
def test_each_kind_shows_passages_of_that_kind(browser, report, kind):
    browser.open(report, 1280)
    only(browser, kind)
    assert browser.run(COUNT) > 0
    sign = {"wrong label": "≠ label", "wrong boundaries": "↔ boundaries"}.get(kind, f"✗ {kind}")
    shown = browser.run(
        "[...document.querySelectorAll('#error-list li')].map((e) => e.textContent)"
    )
    assert shown
    assert all(sign in text for text in shown)
    only(browser)
    assert browser.run(SHOWN) == 0


def test_overlapping_predictions_stand_in_lines_of_their_own(browser, report):
    browser.open(report, 1280)
    choose(browser, "run", run_number(browser, "weibo", "TWO-STEP"))
    item = (
        "[...document.querySelectorAll('#error-list li')].find((e) => e.textContent.includes('c'))"
    )
    choose(browser, "text", "b")
    lines = browser.run(
        "[...document.querySelectorAll('#error-list li')].map((e) => "
        "[...e.querySelectorAll('.side')].map((side) => side.textContent))"
    )
    assert ["gold", "predicted", "predicted", "predicted"] in lines
    assert browser.run(f"{item} !== undefined")


def test_keyboard(browser, report):
    browser.open(report, 1280)
    count = browser.run(COUNT)
    assert count > 25
    assert browser.run(SHOWN) == 25
    browser.run("document.getElementById('error-more').focus()")
    browser.press("Enter", 13, "\r")
    assert browser.run(SHOWN) == 50
    browser.run("document.querySelector('input[value=missed]').focus()")
    browser.press(" ", 32, " ")
    assert not browser.run("document.querySelector('input[value=missed]').checked")
    assert browser.run(COUNT) < count
    browser.press("Tab", 9)
    assert browser.run("document.activeElement.value") == "spurious"
    browser.run("document.querySelector('input[name=text]').focus()")
    browser.type("London")
    assert 0 < browser.run(COUNT) < count
    browser.press("Enter", 13, "\r")
    assert browser.run("location.search") == ""


def test_every_field_has_a_label_and_the_count_is_announced(browser, report):
    browser.open(report, 400)
    unnamed = (
        "[...document.querySelectorAll('input, select')].filter((e) => !e.labels.length).length"
    )
    assert browser.run(unnamed) == 0
    assert browser.run("document.getElementById('error-status').getAttribute('role')") == "status"
    assert browser.run("[...document.images].every((image) => image.alt.length > 10)")
    ids = browser.run("[...document.querySelectorAll('[id]')].map((e) => e.id)")
    assert len(ids) == len(set(ids))


def test_thousands_of_passages_stay_quick(browser, report):
    browser.open(report, 1280)
    total = browser.run(
        "JSON.parse(document.getElementById('error-data').textContent).runs"
        ".reduce((sum, run) => sum + run.items.length, 0)"
    )
    assert total > 3000
    milliseconds = browser.run(
        """(() => {
          const start = performance.now();
          const run = document.forms["error-filters"].elements.run;
          for (let i = 0; i < run.options.length; i++) {
            run.value = i;
            run.dispatchEvent(new Event("input", {bubbles: true}));
          }
          return (performance.now() - start) / run.options.length;
        })()"""
    )
    assert milliseconds < 200
    assert browser.run("document.querySelectorAll('*').length") < 6000
