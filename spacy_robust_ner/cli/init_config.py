"""``init-config``: write a complete training config."""

from pathlib import Path
from typing import Annotated

import typer
from wasabi import msg

from ..recipes import METHODS, config_text, make_config
from ._app import command
from ._options import EncoderName, Lang, TransformerName


def init_config(
    output: Path,
    *,
    method: str,
    encoder: str,
    lang: str = "en",
    gpu: bool = True,
    transformer: str | None = None,
) -> Path:
    """Write the config of a method and an encoder; see make_config.

    RETURNS (Path): The file.
    """
    config = make_config(method, encoder, lang=lang, gpu=gpu, transformer=transformer)
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(config_text(config), encoding="utf8")
    return output


@command("init-config")
def init_config_cli(
    output: Annotated[Path, typer.Argument(help="The config file to write.")],
    method: Annotated[str, typer.Option("--method", "-m", help=f"One of {', '.join(METHODS)}.")],
    encoder: EncoderName = "cnn",
    lang: Lang = "en",
    transformer: TransformerName = None,
    gpu_id: Annotated[
        int, typer.Option("--gpu-id", "-g", help="-1: no mixed precision, which needs a GPU.")
    ] = 0,
) -> None:
    """Write a complete config for `spacy train`, from a method and an encoder."""
    init_config(
        output,
        method=method,
        encoder=encoder,
        lang=lang,
        gpu=gpu_id >= 0,
        transformer=transformer,
    )
    msg.good(f"Saved config: {output}")
    msg.text(f"spacy train {output} --paths.train train.spacy --paths.dev dev.spacy --output out")
