"""``mask``: make unlabeled entities in a well annotated corpus."""

import sys
from collections.abc import Iterable
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer
from wasabi import msg

from ..annotation import REJECTED_SPANS_KEY
from ..corpus.io import DEFAULT_SHARD_SIZE, SUFFIX
from ..corpus.mask import MaskReport, mask_corpus
from ..errors import Errors
from ._app import command, write_json


class MaskedState(str, Enum):
    outside = "outside"
    missing = "missing"


class MaskUnit(str, Enum):
    entity = "entity"
    surface = "surface"


@command("mask")
def mask_cli(
    source: Annotated[Path, typer.Argument(help="Annotated corpus: .spacy file or directory.")],
    target: Annotated[
        Path,
        typer.Argument(help="Masked corpus: a .spacy file, or a directory for numbered shards."),
    ],
    probability: Annotated[
        float | None,
        typer.Option("--probability", "-p", help="Chance of each entity to be masked."),
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(
            "--label",
            "-l",
            metavar="LABEL=P",
            help="Another chance for one label, as in PER=0.8. Can be repeated. Without "
            "--probability, no other label is masked.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", "-s", help="Seed of the choice.")] = 0,
    by: Annotated[
        MaskUnit,
        typer.Option(
            help="Decide for each entity, or once for all mentions of a string: surface is nearer "
            "to the gaps of a dictionary."
        ),
    ] = MaskUnit.entity,
    case_sensitive: Annotated[
        bool,
        typer.Option(
            "--case-sensitive", help="With --by surface: Apple and APPLE are two strings."
        ),
    ] = False,
    exact: Annotated[
        bool,
        typer.Option(
            "--exact", help="Meet the probabilities as exact shares. Reads the corpus twice."
        ),
    ] = False,
    masked_as: Annotated[
        MaskedState, typer.Option("--as", help="State that masked tokens get.")
    ] = MaskedState.outside,
    keep_flags: Annotated[
        bool,
        typer.Option(
            "--keep-flags",
            help="Documents that lose nothing stay complete. By default all become incomplete, "
            "unless every probability is 0.",
        ),
    ] = False,
    gold: Annotated[
        Path | None,
        typer.Option(
            help="Where the documents go as they were. Default: beside the target, with -gold at "
            "the end of its name."
        ),
    ] = None,
    dropped: Annotated[
        Path | None,
        typer.Option(
            help="JSONL listing of the masked entities. Default: beside the target, with -dropped "
            "at the end of its name."
        ),
    ] = None,
    rejected_key: Annotated[
        str, typer.Option(help="The one span group that the masked corpus keeps, beside phrases.")
    ] = REJECTED_SPANS_KEY,
    shard_size: Annotated[
        int, typer.Option(min=1, help="Documents a shard, if the target is a directory.")
    ] = DEFAULT_SHARD_SIZE,
    report: Annotated[
        Path | None, typer.Option("--report", "-r", help="Write the counts to a JSON file.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the counts as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing.")] = False,
) -> None:
    """Take annotation away, to study unlabeled entities.

    The choice depends on the seed, on the place of the document in the corpus and on the place of
    the entity, not on the machine or on shards; a higher probability masks the same entities and
    more. What is taken away goes to the gold corpus and the listing, never to the target: besides
    masked entities, the target loses user data and all span groups but rejected spans and phrases.
    """
    shares = parse_label_probabilities(label or [])
    if probability is None and not shares:
        raise ValueError(Errors.R065)
    # A directory may be called masked-0.5, so only our own suffix is one.
    is_file = target.suffix == SUFFIX
    name = target.stem if is_file else target.name
    gold = gold or target.with_name(f"{name}-gold{SUFFIX if is_file else ''}")
    dropped = dropped or target.with_name(f"{name}-dropped.jsonl")
    result = mask_corpus(
        source,
        target,
        gold,
        dropped,
        probability=probability or 0.0,
        label_probabilities=shares,
        seed=seed,
        by_surface=by is MaskUnit.surface,
        case_sensitive=case_sensitive,
        exact=exact,
        masked_as=masked_as.value,
        keep_flags=keep_flags,
        rejected_spans_key=rejected_key,
        shard_size=shard_size,
        show_progress=not quiet and sys.stderr.isatty(),
    )
    if report is not None:
        write_json(result.as_dict(), report)
    if as_json:
        write_json(result.as_dict(), None)
    elif not quiet:
        _print_report(result, target, gold, dropped)


def parse_label_probabilities(values: Iterable[str]) -> dict[str, float]:
    """Read options of the form LABEL=PROBABILITY.

    values (Iterable[str]): The options.
    RETURNS (Dict[str, float]): The probabilities by label.
    """
    probabilities = {}
    for value in values:
        label, _, number = value.rpartition("=")
        try:
            probability = float(number)
        except ValueError as error:
            raise ValueError(Errors.R064.format(value=value)) from error
        if not label:
            raise ValueError(Errors.R064.format(value=value))
        probabilities[label] = probability
    return probabilities


def _print_report(report: MaskReport, target: Path, gold: Path, dropped: Path) -> None:
    if not report.entities:
        msg.warn("The corpus has no entities: there was nothing to mask.")
    rows = [
        (label, f"{count.entities:,}", f"{count.masked:,}", f"{100 * count.share:.2f}")
        for label, count in sorted(report.labels.items())
    ]
    total = ("all", f"{report.entities:,}", f"{report.masked:,}", f"{100 * report.share:.2f}")
    msg.table(
        rows,
        header=("label", "entities", "masked", "%"),
        footer=total,
        aligns=("l", "r", "r", "r"),
        divider=True,
    )
    msg.info(
        f"{report.documents_masked:,} of {report.documents:,} documents lost entities (seed "
        f"{report.seed})."
    )
    for what, counts in [
        ("span group", report.removed_span_groups),
        ("user data", report.removed_user_data),
    ]:
        for name, documents in sorted(counts.items()):
            msg.info(f"Removed the {what} '{name}' of {documents:,} documents from the target.")
    msg.good(f"Training corpus: {target}")
    msg.good(f"Gold, to be kept away from training: {gold}, {dropped}")
