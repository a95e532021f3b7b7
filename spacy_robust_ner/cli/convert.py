"""The command that converts annotated corpora to .spacy."""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer
from spacy.tokens import Doc
from tqdm import tqdm
from wasabi import msg

from ..corpus.convert import DEFAULT_LANG, CorpusInput, convert
from ..corpus.convert_report import ConvertReport, InputReport, Notes
from ..corpus.formats import FORMATS
from ..corpus.io import DEFAULT_SHARD_SIZE
from ..corpus.source import CHOICES, ReadOptions
from ._app import command, write_json

_SHOWN = 5
_FORMAT_HELP = "; ".join(f"{name}: {each.description}" for name, each in FORMATS.items())


@command("convert")
def convert_cli(
    output: Annotated[
        Path,
        typer.Argument(
            metavar="OUTPUT", help="Corpus to write: a name in .spacy, or a directory for shards."
        ),
    ],
    inputs: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="INPUT",
            help="Inputs whose completeness is not stated, or kept if they are .spacy.",
        ),
    ] = None,
    complete: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="PATH", help="An input in which every entity is annotated. Repeatable."
        ),
    ] = None,
    incomplete: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="PATH", help="An input in which entities may be unlabeled. Repeatable."
        ),
    ] = None,
    format: Annotated[
        str, typer.Option("--format", "-f", help=f"auto: from the content. {_FORMAT_HELP}.")
    ] = "auto",
    lang: Annotated[
        str, typer.Option("--lang", "-l", help="Language whose tokenizer splits running text.")
    ] = DEFAULT_LANG,
    scheme: Annotated[
        str,
        typer.Option(help=f"Scheme of tags, one of: {', '.join(CHOICES['scheme'])}."),
    ] = "auto",
    token_column: Annotated[
        int, typer.Option(help="Column of the tokens; negative counts from the last.")
    ] = 1,
    tag_column: Annotated[int, typer.Option(help="Column of the tags, likewise.")] = -1,
    missing_tag: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TAG",
            help="Tag of tokens that nobody annotated. Repeatable. Default: UNK and -",
        ),
    ] = None,
    docs: Annotated[
        str,
        typer.Option(help="A document of columns: sentence, or docstart (up to -DOCSTART-)."),
    ] = "sentence",
    segmentation_digits: Annotated[
        str,
        typer.Option(
            help="Positions in the word after each character, as in 科0: strip, keep, or auto."
        ),
    ] = "auto",
    tag_map: Annotated[
        Path | None,
        typer.Option(
            "--tag-map",
            "--labels",
            help="What tags that are numbers mean: JSON, or a tag a line. Default: "
            "tag_to_id.json or labels.txt beside the input.",
        ),
    ] = None,
    no_missing: Annotated[
        bool,
        typer.Option(
            "--no-missing",
            help="Prodigy: in accepted answers, the tokens without a label are O, not missing.",
        ),
    ] = False,
    misaligned: Annotated[
        str,
        typer.Option(
            help="Spans that do not begin and end with a token: missing (their tokens are), "
            "expand or contract (to the next token), or error."
        ),
    ] = "missing",
    text_key: Annotated[
        str | None, typer.Option(help="Label Studio: the field that holds the text.")
    ] = None,
    skip_bad: Annotated[
        bool,
        typer.Option("--skip-bad", help="Leave out what is malformed; count it and list it."),
    ] = False,
    shard_size: Annotated[
        int, typer.Option(help="Documents a shard, when the output is a directory.")
    ] = DEFAULT_SHARD_SIZE,
    report: Annotated[
        Path | None, typer.Option(help="File for all counts and lists, as JSON.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")] = False,
) -> None:
    """Convert annotated corpora to .spacy, and keep what their annotation means.

    Several inputs become one corpus: first the plain ones, then those of --complete, then those
    of --incomplete. For example, sentences that annotators labeled in full and others that a
    dictionary labeled in part:

    \b
    spacy-robust-ner convert corpus/train.spacy \\
        --complete yang2018_train.txt --incomplete yang2018_ds_pa.txt

    Tokens are entity, O or missing (nobody annotated them). Prodigy: accepted spans are entities,
    and the other tokens of an accepted text are missing, or O with --no-missing; rejected spans
    are kept as such, and the tokens of a text with nothing but rejected spans are missing;
    ignored answers are left out; answers on the same text are merged. Of entities that overlap,
    the longest is kept, and all are in doc.spans["all_entities"]. Whatever is left out or changed
    is counted and listed.

    Memory holds one shard at most; a single .spacy file is one shard.
    """
    options = ReadOptions(
        scheme=scheme,
        token_column=token_column,
        tag_column=tag_column,
        docs=docs,
        segmentation_digits=segmentation_digits,
        tag_map=tag_map,
        no_missing=no_missing,
        misaligned=misaligned,
        text_key=text_key,
        skip_bad=skip_bad,
        **({"missing_tags": tuple(missing_tag)} if missing_tag else {}),
    )
    given = [CorpusInput(path) for path in inputs or []]
    given += [CorpusInput(path, complete=True) for path in complete or []]
    given += [CorpusInput(path, complete=False) for path in incomplete or []]

    def progress(stream: Iterable[Doc]) -> Iterable[Doc]:
        hidden = quiet or not sys.stderr.isatty()
        return tqdm(stream, unit=" docs", disable=hidden, file=sys.stderr)

    result = convert(
        given,
        output,
        nlp=lang,
        format=format,
        options=options,
        shard_size=shard_size,
        progress=progress,
    )
    if report is not None:
        write_json(result.to_dict(), report)
    if not quiet:
        _print_report(result)


def _print_report(report: ConvertReport) -> None:
    for each in report.inputs:
        _print_input(each)
    entities = sum(report.entities.values())
    msg.good(
        f"{report.documents:,} documents, {report.tokens:,} tokens, {entities:,} entities "
        f"in {report.output}"
    )


def _print_input(each: InputReport) -> None:
    msg.divider(each.path)
    found = "found" if "format" in each.found else "given"
    rows = [("Format", f"{each.format} ({found})")]
    if each.scheme:
        found = "found" if "scheme" in each.found else "given"
        rows.append(("Tag scheme", f"{each.scheme} ({found})"))
    rows += [("Note", text) for text in each.found if text not in ("format", "scheme")]
    flags = {"complete": each.complete, "incomplete": each.incomplete, "not stated": each.unstated}
    stated = ", ".join(f"{count:,} {name}" for name, count in flags.items() if count)
    rows += [
        ("Documents", f"{each.documents:,} ({stated})" if stated else "0"),
        ("Tokens", f"{each.tokens:,}, {each.missing_tokens:,} of them missing"),
        ("Entities", f"{each.entities.total():,}"),
    ]
    rows += [(f"  {label}", f"{count:,}") for label, count in each.entities.most_common()]
    if each.rejected_spans:
        rows.append(("Rejected spans", f"{each.rejected_spans:,}"))
    if each.blank_tokens:
        rows.append(("Blank tokens", f"{each.blank_tokens:,}, kept as whitespace"))
    rows += [(f"Left out: {reason}", f"{count:,}") for reason, count in each.ignored.items()]
    msg.table(rows)
    _print_notes("tags out of order, read as the start or end of an entity", each.irregular_tags)
    _print_notes("misaligned spans", each.misaligned)
    _print_notes("overlapped entities, in doc.spans only", each.overlapping)
    _print_notes("spans both accepted and rejected, now missing", each.conflicts)
    _print_notes("malformed parts left out", each.skipped)


def _print_notes(title: str, notes: Notes) -> None:
    if not notes.count:
        return
    msg.warn(f"{notes.count:,} {title}")
    for note in notes.listed[:_SHOWN]:
        span = f" {note.text!r}" if note.text else ""
        label = f" ({note.label})" if note.label else ""
        msg.text(f"line {note.line}:{span}{label} {note.reason}")
    if notes.count > _SHOWN:
        msg.text("… (--report lists more)")
