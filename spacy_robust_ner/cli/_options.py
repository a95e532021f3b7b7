"""Options that several commands have."""

from pathlib import Path
from typing import Annotated

import typer

GpuId = Annotated[int, typer.Option("--gpu-id", "-g", help="GPU, or -1 for the CPU.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")]
JsonOutput = Annotated[
    Path | None, typer.Option("--output", "-o", help="Write the figures to a JSON file.")
]
ComponentName = Annotated[
    str | None, typer.Option(help="The component's name, if there are several.")
]
