"""A browser of errors for the HTML report: sentences with what is true and what was found."""

import html
import json
from collections.abc import Iterator, Sequence
from importlib.resources import files
from typing import Any

from .analysis import RunAnalysis
from .comparison import Section
from .error_types import KINDS, Kind, Mark
from .page import Html
from .passages import CONTEXT, WHOLE, Passage
from .results import Run, Split
from .section_figures import Analyses

# Passages of the test text a run, and as many of the training text.
PASSAGES = 200

_ALL_KINDS: tuple[Kind, ...] = ("correct", *KINDS)
_SPLITS: tuple[Split, ...] = ("test", "train")


def error_browser(sections: Sequence[Section], analyses: Analyses) -> Html | None:
    """Build the browser. Its data are in the page; the script draws what the filters let through,
    a few passages at a time.

    sections (Sequence[Section]): The runs; of each setting, the first seed is shown.
    analyses (Analyses): Their predictions.
    RETURNS (Optional[Html]): The browser, or None if there is nothing to see.
    """
    texts: dict[tuple[str, ...], int] = {}
    labels: dict[str, int] = {}
    runs = [
        _run_data(section, run, analysis, texts, labels)
        for section, run, analysis in _shown_runs(sections, analyses)
    ]
    if not any(run["items"] for run in runs):
        return None
    data = {
        "kinds": list(_ALL_KINDS),
        "labels": list(labels),
        "texts": list(texts),
        "runs": runs,
    }
    return Html(
        html=_markup(runs, list(labels)) + _script_data(data),
        style=_read("error_browser.css"),
        script=_read("error_browser.js"),
        markdown="The HTML version of this report has a browser of errors.",
    )


def _shown_runs(
    sections: Sequence[Section], analyses: Analyses
) -> Iterator[tuple[Section, Run, RunAnalysis]]:
    for section in sections:
        for column in section.columns:
            for row in section.rows:
                known = (r for r in section.runs(row, column) if r.result["cell"] in analyses)
                run = next(known, None)
                if run is not None:
                    yield section, run, analyses[run.result["cell"]]


def _run_data(
    section: Section,
    run: Run,
    analysis: RunAnalysis,
    texts: dict[tuple[str, ...], int],
    labels: dict[str, int],
) -> dict[str, Any]:
    row = next(row for row in section.rows if row.variant == run.result["variant"])
    return {
        "group": f"{section.title}: {section.column_title(run.masking)}",
        "name": f"{row.title} (seed {run.result['seed']})",
        "lang": run.result.get("lang", ""),
        "left": [analysis.left_out[split] for split in _SPLITS],
        "items": [_passage_data(passage, texts, labels) for passage in analysis.passages],
    }


def _passage_data(
    passage: Passage, texts: dict[tuple[str, ...], int], labels: dict[str, int]
) -> list[Any]:
    return [
        texts.setdefault(passage.tokens, len(texts)),
        _SPLITS.index(passage.split),
        int(passage.cut_before),
        int(passage.cut_after),
        [_mark_data(mark, labels) for mark in passage.marks],
    ]


def _mark_data(mark: Mark, labels: dict[str, int]) -> list[Any]:
    return [
        int(mark.side == "predicted"),
        mark.start,
        mark.end,
        labels.setdefault(mark.label, len(labels)),
        _ALL_KINDS.index(mark.kind),
        int(mark.masked),
        None if mark.score is None else round(mark.score, 3),
    ]


def _script_data(data: dict[str, Any]) -> str:
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    # No text may end the script element, or start a comment in it.
    text = text.replace("<", "\\u003c")
    return f'\n<script type="application/json" id="error-data">{text}</script>'


def _markup(runs: Sequence[dict[str, Any]], labels: Sequence[str]) -> str:
    left_out = sum(sum(run["left"]) for run in runs)
    bounds = (
        f"At most {PASSAGES} passages of the test text and as many of the training text are shown "
        f"of a run, the same ones of all runs as far as they have errors; {left_out:,} more were "
        "left out. "
        if left_out
        else ""
    )
    kinds = "".join(
        f'<label title="{html.escape(meaning)}"><input type="checkbox" name="kind" value="{kind}" '
        f'checked> {kind} <span class="number"></span></label>'
        for kind, meaning in KINDS.items()
    )
    groups: dict[str, list[str]] = {}
    for i, run in enumerate(runs):
        option = f'<option value="{i}">{html.escape(run["name"])}</option>'
        groups.setdefault(run["group"], []).append(option)
    options = "".join(
        f'<optgroup label="{html.escape(group)}">{"".join(own)}</optgroup>'
        for group, own in groups.items()
    )
    label_options = "".join(
        f'<option value="{labels.index(label)}">{html.escape(label)}</option>'
        for label in sorted(labels)
    )
    return f"""
<p>Passages in which something went wrong or a masked entity was found again, with the true
entities above and the predicted ones below; one seed of each setting. In a dashed frame are
entities that had lost their label in training. {bounds}Documents of more
than {WHOLE} tokens are cut to {CONTEXT} tokens around what there is to see.</p>
<noscript><p>The browser of errors needs JavaScript.</p></noscript>
<form id="error-filters" class="filters">
<label>Run <select name="run">{options}</select></label>
<label>Label <select name="label"><option value="">all</option>{label_options}</select></label>
<label>Text contains <input type="search" name="text" autocomplete="off"></label>
<fieldset><legend>Show</legend>{kinds}</fieldset>
</form>
<p id="error-status" role="status"></p>
<ol id="error-list"></ol>
<p><button type="button" id="error-more" hidden>Show more</button></p>
"""


def _read(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf8")
