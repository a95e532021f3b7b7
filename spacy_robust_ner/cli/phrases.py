"""``phrases``: mark what may be an entity of any type, for the fuzzy CRF."""

import sys
from pathlib import Path
from typing import Annotated

import typer
from wasabi import msg

from ..annotation import PHRASES_KEY
from ..corpus.dictionaries import parse_source, read_word_list
from ..corpus.io import DEFAULT_SHARD_SIZE
from ..corpus.matching import MatchSettings
from ..corpus.phrases import PhraseReport, mark_phrases
from ._app import command, write_figures
from ._options import (
    Case,
    CaseOption,
    ExcludeOption,
    Lang,
    ReportPath,
    ShardSize,
    SkipBad,
    Tokens,
    TokensOption,
)


@command("phrases")
def phrases_cli(
    source: Annotated[Path, typer.Argument(help="Corpus: .spacy file or directory.")],
    target: Annotated[
        Path,
        typer.Argument(help="The copy: a .spacy file, or a directory for numbered shards."),
    ],
    phrases: Annotated[
        list[str],
        typer.Option(
            "--phrases",
            "-p",
            metavar="PATH",
            help="Phrases in any format that a dictionary of 'annotate' may have: a list of one a "
            "line, ruler patterns, … Labels do not count. Can be repeated.",
            show_default=False,
        ),
    ],
    key: Annotated[str, typer.Option(help="Span group of the phrases.")] = PHRASES_KEY,
    lang: Lang = "en",
    case: CaseOption = Case.exact,
    tokens: TokensOption = Tokens.auto,
    exclude: ExcludeOption = None,
    shard_size: ShardSize = DEFAULT_SHARD_SIZE,
    skip_bad: SkipBad = False,
    report_path: ReportPath = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the counts as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing.")] = False,
) -> None:
    """Mark phrases that may be entities of any type.

    The fuzzy CRF leaves their tokens open and takes all others outside of entities for O. Entities
    and everything else stay as they are. Of overlapping phrases the longest stays, then the one
    that starts first.
    """
    report = mark_phrases(
        source,
        target,
        [part for argument in phrases for part in parse_source(argument)],
        key=key,
        lang=lang,
        settings=MatchSettings(
            case=case.value, exclude=read_word_list(exclude) if exclude else frozenset()
        ),
        tokens=tokens.value,
        shard_size=shard_size,
        skip_bad=skip_bad,
        show_progress=not (quiet or as_json) and sys.stderr.isatty(),
    )
    if not write_figures(report.to_dict(), report_path, as_json=as_json) and not quiet:
        print_report(report)


def print_report(report: PhraseReport) -> None:
    """report (PhraseReport): Printed for people."""
    msg.good(f"Marked {report.phrases:,} phrases in doc.spans['{report.key}']: {report.output}")
    entries = report.entries
    msg.table(
        [
            ("Documents", f"{report.documents:,}"),
            ("with phrases", f"{report.documents_with_phrases:,}"),
            ("whose earlier group was replaced", f"{report.replaced:,}"),
            ("Tokens", f"{report.tokens:,}"),
            ("in phrases", f"{report.tokens_in_phrases:,}"),
            ("of these in no entity: open from now on", f"{report.outside_in_phrases:,}"),
            ("Entries read", f"{entries.read:,}"),
            ("Left out: on the exclusion list", f"{entries.excluded:,}"),
            ("Never found", f"{report.entries_never_found:,}"),
            ("Matches within a longer one", f"{report.contained:,}"),
            ("Matches that crossed one that stayed", f"{report.crossing:,}"),
            ("Matches in the wrong case", f"{report.wrong_case:,}"),
            ("Lines left out", f"{len(report.bad_lines):,}"),
        ],
        aligns=("l", "r"),
        max_col=60,
    )
    for line in report.bad_lines:
        msg.warn(f"{line.path}, line {line.line}: {line.reason}")
    if not report.phrases:
        msg.warn("No phrase occurs in the corpus. Try --case smart, or another --tokens.")
