"""``stats``: what is in a corpus."""

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

import typer
from wasabi import msg

from ..corpus.sparsity import MIN_CASES
from ..corpus.stats import TRAIN, CorpusStats, PartStats, compute_stats
from ..diagnostics.sparsity_plot import check_drawable, draw_sparsity
from ._app import command, write_json

_MAX_WIDTH_ROWS = 12
_MAX_EXAMPLE_CHARS = 80


@command("stats")
def stats_cli(
    train: Annotated[Path, typer.Argument(help="Training corpus: .spacy file or directory.")],
    dev: Annotated[Path | None, typer.Option(help="Development corpus.")] = None,
    test: Annotated[Path | None, typer.Option(help="Test corpus.")] = None,
    top: Annotated[
        int, typer.Option("--top", "-n", min=0, help="Contradictory strings to list.")
    ] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Print the statistics as JSON.")] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the statistics to a JSON file.")
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            help="Draw entity counts of the training corpus against the square root of length "
            "(.png, .svg or .pdf). Needs the extra 'plots'."
        ),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing.")] = False,
) -> None:
    """Describe a corpus: labels, widths, token states, completeness, sparsity of entities,
    documents that occur in two parts, and strings that are entities here and O there.

    The last are the cheapest sign of missing labels. They are looked for in the training corpus
    alone.
    """
    if plot is not None:
        check_drawable(plot)
    stats = compute_stats(
        train, dev=dev, test=test, show_progress=not quiet and sys.stderr.isatty()
    )
    if output is not None:
        write_json(stats.as_dict(top=top), output)
    if plot is not None:
        draw_sparsity(stats.parts[TRAIN].sparsity.points(), plot)
    if as_json:
        write_json(stats.as_dict(top=top), None)
    elif not quiet:
        _print_counts(stats)
        _print_widths(stats.parts[TRAIN])
        _print_sparsity(stats)
        _print_overlaps(stats)
        _print_forms(stats, top)
        _print_doubtful(stats, top)
        _print_fragments(stats)
        _print_outside_places(stats)
        for what, path in [("Statistics", output), ("Drawing", plot)]:
            if path is not None:
                msg.good(f"{what}: {path}")


def _print_counts(stats: CorpusStats) -> None:
    parts = stats.parts.values()
    labels = sorted({label for part in parts for label in part.labels})
    msg.divider("Counts")
    _table(
        ["", *stats.parts],
        [
            _counts("documents", (part.documents for part in parts)),
            _counts("  complete", (part.complete for part in parts)),
            _counts("  incomplete", (part.incomplete for part in parts)),
            _counts("  not stated", (part.unstated for part in parts)),
            _counts("  without entities", (part.documents_without_entities for part in parts)),
            _counts("  same as an earlier one", (part.repeated_documents for part in parts)),
            _counts("longest (tokens)", (part.longest for part in parts)),
            _counts("tokens", (part.tokens for part in parts)),
            _counts("  in entities", (part.entity_tokens for part in parts)),
            _counts("  O", (part.outside_tokens for part in parts)),
            _counts("  missing", (part.missing_tokens for part in parts)),
            ["entity tokens (%)", *(_percent(part.entity_token_ratio) for part in parts)],
            _counts("entities", (part.entities for part in parts)),
            *(_counts(f"  {label}", (part.labels[label] for part in parts)) for label in labels),
        ],
    )


def _print_widths(part: PartStats) -> None:
    msg.divider("Entity widths (training)")
    coverage = part.width_coverage()
    rows = [
        [str(width), f"{part.widths[width]:,}", _percent(covered)]
        for width, covered in list(coverage.items())[:_MAX_WIDTH_ROWS]
    ]
    if len(coverage) > _MAX_WIDTH_ROWS:
        widest = max(coverage)
        rows.append([f"… {widest}", f"{part.widths[widest]:,}", _percent(coverage[widest])])
    _table(["width", "entities", "covered (%)"], rows)


def _print_sparsity(stats: CorpusStats) -> None:
    msg.divider("Entities m against the square root of the tokens n")
    rows = []
    for name, part in stats.parts.items():
        sparsity = part.sparsity
        points, above = sparsity.points(), sparsity.lengths_above_root()
        rows.append(
            [
                name,
                f"{sparsity.violations:,}",
                _percent(sparsity.violation_share),
                f"{len(above)} of {len(points)}",
            ]
        )
    mean_header = f"lengths with mean m > √n (of {MIN_CASES}+ documents)"
    _table(["", "documents with m > √n", "%", mean_header], rows)


def _print_overlaps(stats: CorpusStats) -> None:
    if not stats.overlaps:
        return
    msg.divider("Documents in two parts")
    _table(
        ["part", "also in", "documents", "%", "ignoring case", "%"],
        [
            [
                overlap.second,
                overlap.first,
                f"{overlap.second_documents:,}",
                _percent(overlap.second_share),
                f"{overlap.folded_second_documents:,}",
                _percent(overlap.folded_second_share),
            ]
            for overlap in stats.overlaps
        ],
        text_columns=2,
    )


def _print_forms(stats: CorpusStats, top: int) -> None:
    msg.divider("Strings that are entities here and O there (training)")
    msg.text(
        f"{len(stats.outside_forms):,} of {stats.surface_forms:,} labeled strings, "
        f"{stats.outside_mentions:,} times O."
    )
    coverage = stats.findings.coverage
    if coverage is not None:
        msg.text(
            f"Judging by labeled strings that come again, {100 * coverage:.0f}% of the entities "
            "are labeled (whole strings that a dictionary lacks are not seen)."
        )
    rows = [
        [
            form.text,
            ", ".join(f"{label} {count:,}" for label, count in form.labels.most_common()),
            f"{form.outside:,}",
            _shortened(form.example or ""),
        ]
        for form in stats.outside_forms[:top]
    ]
    if rows:
        header = ["string", "labeled", "O", "first O place"]
        msg.table(
            rows,
            header=header,
            aligns=("l", "l", "r", "l"),
            divider=True,
            max_col=_MAX_EXAMPLE_CHARS,
        )


def _print_doubtful(stats: CorpusStats, top: int) -> None:
    forms = stats.doubtful_forms
    if not forms:
        return
    msg.divider("Labeled strings that are rather ordinary words (training)")
    msg.text(
        f"{sum(form.labeled for form in forms):,} labels of {len(forms):,} strings, most of whose "
        "places, in upper or lower case, have none. `withdraw_doubtful = true` trains without them."
    )
    _table(
        ["string", "labeled", "O"],
        [[form.text, f"{form.labeled:,}", f"{form.outside:,}"] for form in forms[:top]],
    )


def _print_fragments(stats: CorpusStats) -> None:
    fragments = stats.fragments
    if not fragments.labels:
        return
    msg.divider("Labels that seem to be parts of longer names (training)")
    advice = (
        "`withdraw_fragments = true` trains without them."
        if stats.findings.capitals_mark_names
        else "That says nothing here, as most capitalized words are in no entity."
    )
    msg.text(
        f"{fragments.labels:,} labels have a capitalized word without a label beside them. "
        f"{advice} For example:"
    )
    for example in fragments.examples:
        msg.text(f"  {_shortened(example)}")


def _print_outside_places(stats: CorpusStats) -> None:
    findings = stats.findings
    if not findings.outside_places:
        return
    msg.divider("Where labels hardly ever are (training)")
    tokens = sum(findings.outside_places.values())
    msg.text(
        f"{_percent(tokens / findings.tokens)}% of the tokens. `outside_by_writing = true` takes "
        "them for O where they have no label. Their writing, between that of their neighbours "
        "(X: with a capital letter, x: lower case, a: letters without case, d: digits, "
        ".: others, ^ and $: begin and end):"
    )
    msg.text(", ".join(findings.outside_places))


def _table(header: Sequence[str], rows: Sequence[Sequence[str]], *, text_columns: int = 1) -> None:
    aligns = ["l"] * text_columns + ["r"] * (len(header) - text_columns)
    msg.table(rows, header=header, aligns=aligns, divider=True, max_col=_MAX_EXAMPLE_CHARS)


def _counts(name: str, values: Iterable[int]) -> list[str]:
    return [name, *(f"{value:,}" for value in values)]


def _percent(share: float) -> str:
    return f"{100 * share:.2f}"


def _shortened(text: str) -> str:
    """Cut around the string in brackets, which must stay in sight."""
    if len(text) <= _MAX_EXAMPLE_CHARS:
        return text
    start = max(min(text.index("[") - 30, len(text) - _MAX_EXAMPLE_CHARS), 0)
    return text[start : start + _MAX_EXAMPLE_CHARS].strip()
