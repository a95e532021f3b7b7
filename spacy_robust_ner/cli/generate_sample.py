"""Write the sample corpus."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from wasabi import msg

from ..sample import DEFAULT_SEED, generate_sample
from ._app import command, write_json


@command("generate-sample")
def generate_sample_cli(
    output_dir: Annotated[
        Path, typer.Argument(help="Directory for the files; earlier ones are replaced.")
    ],
    seed: Annotated[
        int, typer.Option("--seed", "-s", help="The same seed gives the same files everywhere.")
    ] = DEFAULT_SEED,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the counts as JSON instead of a table.")
    ] = False,
) -> None:
    """Write the sample corpus: English and Chinese columns, dictionaries and raw text.

    The text is made from hand-written sentences and invented names. The files under assets/ of
    the repository are the output for seed 0.
    """
    counts = generate_sample(output_dir, seed=seed)
    if as_json:
        write_json({name: asdict(count) for name, count in counts.items()}, None)
        return
    rows = [(name, *asdict(count).values()) for name, count in counts.items()]
    msg.table(
        rows,
        header=("file", "documents", "sentences", "tokens", "entities"),
        aligns=("l", "r", "r", "r", "r"),
        divider=True,
    )
    msg.good(f"Wrote the sample for seed {seed} to {output_dir}")
