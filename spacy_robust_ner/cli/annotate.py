"""``annotate``: distant supervision with dictionaries."""

import sys
from collections.abc import Iterable
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer
from tqdm import tqdm
from wasabi import msg

from ..corpus.dictionaries import parse_source, read_word_list
from ..corpus.distant import AnnotateReport, annotate_corpus
from ..corpus.io import DEFAULT_SHARD_SIZE
from ..corpus.matching import MatchSettings
from ..corpus.units import Unit
from ..errors import Errors
from ._app import command, write_json
from ._options import Case, CaseOption, ExcludeOption, ShardSize, SkipBad, Tokens, TokensOption

_OUTCOMES = ("true_positives", "false_positives", "false_negatives")


class Whitespace(str, Enum):
    normalise = "normalise"
    keep = "keep"


class Ambiguous(str, Enum):
    first = "first"
    drop = "drop"
    frequency = "frequency"


class Rest(str, Enum):
    outside = "outside"
    missing = "missing"


@command("annotate")
def annotate_cli(
    inputs: Annotated[
        list[Path],
        typer.Argument(
            help="Raw text, a .spacy corpus, or anything that 'convert' reads.", show_default=False
        ),
    ],
    dictionaries: Annotated[
        list[str],
        typer.Option(
            "--dictionary",
            "-d",
            metavar="[LABEL=]PATH",
            help="A list of one entry a line (its label is the file's name, unless given), a .tsv "
            "of entry, label and perhaps a count, a .jsonl or .json of spaCy ruler patterns "
            "(strings are matched as phrases, lists as token patterns), a saved ruler, or a "
            "directory of such files. Can be repeated; earlier ones have priority.",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Annotated corpus: a .spacy file, or a directory for numbered shards. Without "
            "it the matches are only measured.",
        ),
    ] = None,
    lang: Annotated[
        str, typer.Option("--lang", help="Language of the tokenizer for entries and raw text.")
    ] = "en",
    format: Annotated[
        str,
        typer.Option(
            "--format",
            "-f",
            help="'lines' for raw text with a document a line, 'files' for a document a file, or a "
            "format of 'convert'. auto: text files whose lines do not end in tags are raw lines.",
        ),
    ] = "auto",
    case: CaseOption = Case.exact,
    whitespace: Annotated[
        Whitespace, typer.Option(help="What to do with runs of whitespace inside of entries.")
    ] = Whitespace.normalise,
    tokens: TokensOption = Tokens.auto,
    ambiguous: Annotated[
        Ambiguous,
        typer.Option(
            help="An entry under several labels: take the label that was read first, the one with "
            "the highest count (repeated lines add up), or drop the entry."
        ),
    ] = Ambiguous.first,
    exclude: ExcludeOption = None,
    min_length: Annotated[
        int, typer.Option("--min-length", help="Leave out entries with fewer characters.")
    ] = 1,
    rest: Annotated[Rest, typer.Option(help="State of the tokens outside of matches.")] = (
        Rest.outside
    ),
    evaluate: Annotated[
        bool,
        typer.Option("--evaluate", help="Measure the matches against the input's own entities."),
    ] = False,
    gold: Annotated[
        Path | None,
        typer.Option(
            "--gold", help="Measure the matches against this corpus with the same documents."
        ),
    ] = None,
    processes: Annotated[
        int, typer.Option("--processes", "-n", help="Number of processes. Same result.")
    ] = 1,
    shard_size: ShardSize = DEFAULT_SHARD_SIZE,
    skip_bad: SkipBad = False,
    report_path: Annotated[
        Path | None, typer.Option("--report", help="Write the report to this JSON file.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the report as JSON, and nothing else.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing.")] = False,
) -> None:
    """Annotate text with dictionaries (distant supervision).

    Matches become the entities of the output. Its documents are flagged as incompletely
    annotated, and nothing of the input's own annotation gets there. Of overlapping matches the
    longest stays, then the one that starts first, then the one of the earlier dictionary.
    """
    if output is None and gold is None and not evaluate:
        raise ValueError(Errors.R089)
    settings = MatchSettings(
        case=case.value,
        whitespace=whitespace.value,
        ambiguous=ambiguous.value,
        exclude=read_word_list(exclude) if exclude else frozenset(),
        min_length=min_length,
    )
    silent = quiet or as_json or not sys.stderr.isatty()

    def show_progress(units: Iterable[Unit]) -> Iterable[Unit]:
        return tqdm(units, desc="Annotating", unit=" docs", disable=silent, leave=False)

    report = annotate_corpus(
        inputs,
        [source for argument in dictionaries for source in parse_source(argument)],
        output=output,
        lang=lang,
        format=format,
        settings=settings,
        tokens=tokens.value,
        rest=rest.value,
        evaluate=evaluate,
        gold=gold,
        processes=processes,
        shard_size=shard_size,
        skip_bad=skip_bad,
        progress=show_progress,
    )
    if report_path is not None:
        write_json(report.to_dict(), report_path)
    if as_json:
        write_json(report.to_dict(), None)
    elif not quiet:
        print_report(report)


def print_report(report: AnnotateReport) -> None:
    """report (AnnotateReport): Printed for people."""
    if report.output:
        msg.good(f"Annotated {report.documents:,} documents: {report.output}")
    else:
        msg.info(f"Matched {report.documents:,} documents; nothing was written")
    unit = "characters" if report.token_unit == "characters" else "words"
    entries = report.dictionary
    msg.text(f"{report.tokens:,} tokens ({unit}), {sum(report.matches.values()):,} entities")
    msg.table(
        [
            ("Entries read", f"{entries.read:,}"),
            ("of these token patterns", f"{entries.token_patterns:,}"),
            ("Left out: on the exclusion list", f"{entries.excluded:,}"),
            ("Left out: too short", f"{entries.too_short:,}"),
            ("Left out: repeated", f"{entries.repeated:,}"),
            ("Under several labels", f"{entries.ambiguous:,}"),
            ("Used for an entity", f"{report.entries_used:,}"),
            ("Found, but always overruled", f"{report.entries_overruled:,}"),
            ("Never found", f"{report.entries_never_found:,}"),
            ("Matches within a better one", f"{report.contained:,}"),
            ("Matches that crossed a better one", f"{report.crossing:,}"),
            ("Matches in the wrong case", f"{report.wrong_case:,}"),
            ("Dictionary lines left out", f"{report.bad_dictionary:,}"),
            ("Malformed parts of the input left out", f"{report.bad_input:,}"),
        ],
        aligns=("l", "r"),
        max_col=60,
    )
    for line in report.bad_lines:
        msg.warn(f"{line.path}, line {line.line}: {line.reason}")
    if report.scores is None:
        rows = [(label, f"{count:,}") for label, count in report.matches.items()]
        msg.table(rows, header=("Label", "Entities"), aligns=("l", "r"), divider=True)
        return
    scored = [*report.scores["labels"].items(), ("all", report.scores["overall"])]
    msg.table(
        [
            (
                label,
                *(f"{100 * score[name]:.2f}" for name in "prf"),
                *(f"{score[name]:,}" for name in _OUTCOMES),
            )
            for label, score in scored
        ],
        header=("Label", "P", "R", "F1", "True pos.", "False pos.", "False neg."),
        aligns=("l", *"rrrrrr"),
        divider=True,
    )
    if report.scores["not_judged"]:
        msg.text(f"{report.scores['not_judged']:,} matches on missing gold were not judged")
