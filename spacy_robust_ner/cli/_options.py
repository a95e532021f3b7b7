"""Options that several commands have."""

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from ..experiments.matrix_file import GIVEN_ENCODERS
from ..recipes import ENCODERS


class Case(str, Enum):
    exact = "exact"
    insensitive = "insensitive"
    smart = "smart"


class Tokens(str, Enum):
    auto = "auto"
    words = "words"
    characters = "characters"


GpuId = Annotated[int, typer.Option("--gpu-id", "-g", help="GPU, or -1 for the CPU.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")]
JsonOutput = Annotated[
    Path | None, typer.Option("--output", "-o", help="Write the figures to a JSON file.")
]
ComponentName = Annotated[
    str | None, typer.Option(help="The component's name, if there are several.")
]
ReportPath = Annotated[
    Path | None, typer.Option("--report", help="Write the figures to this JSON file.")
]
Repetitions = Annotated[
    int, typer.Option("--repetitions", "-n", help="Runs of each; the median counts.")
]
EncoderName = Annotated[str, typer.Option("--encoder", "-e", help=f"One of {', '.join(ENCODERS)}.")]
EncoderOfAllRuns = Annotated[
    str,
    typer.Option(
        "--encoder",
        "-e",
        help=f"Encoder of all runs: {', '.join(ENCODERS)}, or the name or path of a transformer. "
        f"'{GIVEN_ENCODERS}' stands for those that the file names.",
    ),
]
Lang = Annotated[str, typer.Option("--lang", "-l", help="Language code.")]
TransformerName = Annotated[
    str | None,
    typer.Option("--transformer", "-t", help="Hugging Face encoder for trf: name or path."),
]
CaseOption = Annotated[
    Case,
    typer.Option(
        help="exact: as written. insensitive: in any case. smart: in any case, but an entry in "
        "capitals only matches capitals, and any other entry with a capital letter does not "
        "match lower-case text."
    ),
]
TokensOption = Annotated[
    Tokens,
    typer.Option(
        help="Split entries (and raw text) into words or into characters. auto: as the first "
        "documents are."
    ),
]
ExcludeOption = Annotated[
    Path | None,
    typer.Option(
        "--exclude",
        help="List of frequent words, one a line: entries that equal one of them in any case "
        "are not used.",
    ),
]
ShardSize = Annotated[int, typer.Option("--shard-size", help="Documents a shard.")]
SkipBad = Annotated[
    bool, typer.Option("--skip-bad", help="Leave out malformed lines, and list them.")
]
