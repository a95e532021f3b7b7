"""Options that several commands have."""

from pathlib import Path
from typing import Annotated

import typer

from ..recipes import ENCODERS

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
Lang = Annotated[str, typer.Option("--lang", "-l", help="Language code.")]
TransformerName = Annotated[
    str | None,
    typer.Option("--transformer", "-t", help="Hugging Face encoder for trf: name or path."),
]
