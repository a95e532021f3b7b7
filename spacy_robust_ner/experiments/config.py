"""The training config of a cell."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from spacy.util import load_config
from thinc.api import Config

from ..errors import Errors
from ..recipes import METHODS, config_text, make_config
from .matrix import Cell

# The settings that the runner makes itself.
_RESERVED = ("paths.train", "paths.dev", "system.seed", "nlp.lang")


def cell_config(cell: Cell, configs: Path | None, *, gpu: bool) -> Config:
    """Build the config of a cell, with its settings and without its paths and seed.

    cell (Cell): The cell.
    configs (Optional[Path]): A directory of configs, instead of the package's own.
    gpu (bool): Whether the cell runs on a GPU.
    RETURNS (Config): The config, with its variables.
    """
    method, encoder, lang = cell.variant.method, cell.encoder.encoder, cell.dataset.lang
    config = (
        _own_config(method, encoder, lang, gpu).copy()
        if configs is None
        else _config_file(configs, method, encoder, lang, gpu)
    )
    # One console logger for all, so that every run leaves its history.
    config["training"]["logger"] = {
        "@loggers": "spacy.ConsoleLogger.v3",
        "progress_bar": None,
        "console_output": True,
        "output_file": None,
    }
    _apply(config, cell.overrides, cell.name)
    return config


@cache
def _own_config(method: str, encoder: str, lang: str, gpu: bool) -> Config:
    return make_config(method, encoder, lang=lang, gpu=gpu)


def _config_file(configs: Path, method: str, encoder: str, lang: str, gpu: bool) -> Config:
    path = configs / METHODS[method].group / f"{method}-{encoder}.cfg"
    if not path.is_file():
        raise FileNotFoundError(Errors.R203.format(path=path, method=method, encoder=encoder))
    config = load_config(path, interpolate=False)
    if config["nlp"]["lang"] != lang:
        config["nlp"]["lang"] = lang
        # Each language has its own tokenizer, which spacy fills in.
        config["nlp"].pop("tokenizer", None)
        config["initialize"].pop("tokenizer", None)
    if "transformer" in config["components"] and not gpu:
        # torch refuses automatic mixed precision without a capable GPU.
        config["components"]["transformer"]["model"]["mixed_precision"] = False
        config["system"]["gpu_allocator"] = None
    return config


def _apply(config: Config, overrides: Mapping[str, Any], name: str) -> None:
    for setting, value in overrides.items():
        if setting in _RESERVED:
            raise ValueError(Errors.R206.format(setting=setting, cell=name))
        *sections, option = setting.split(".")
        block: Any = config
        for section in sections:
            block = block.get(section) if isinstance(block, dict) else None
        if not isinstance(block, dict) or option not in block:
            known = (
                ", ".join(block) if isinstance(block, dict) else "none, as there is no such block"
            )
            raise ValueError(Errors.R207.format(setting=setting, cell=name, known=known))
        block[option] = value


def final_text(config: Config, *, train: Path, dev: Path, seed: int) -> str:
    """RETURNS (str): The config as a file, with its paths and its seed."""
    config = config.copy()
    config["paths"].update({"train": str(train), "dev": str(dev)})
    config["system"]["seed"] = seed
    return config_text(config)
