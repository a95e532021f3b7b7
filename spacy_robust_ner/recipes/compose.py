"""Merge an encoder's and a method's blocks into one complete config."""

from importlib.resources import files

from spacy.util import CONFIG_SECTION_ORDER, load_config_from_str, load_model_from_config
from thinc.api import Config

from ..errors import Errors
from .catalogue import ENCODERS, METHODS

# Blocks of an encoder that go into the components which use it.
_LISTENER, _HEAD, _PARSER = "listener", "head", "parser"


def make_config(
    method: str,
    encoder: str,
    *,
    lang: str = "en",
    gpu: bool = True,
    transformer: str | None = None,
) -> Config:
    """Build a config that ``spacy train`` runs as it is.

    method (str): A name in METHODS.
    encoder (str): A name in ENCODERS.
    lang (str): The language code.
    gpu (bool): Whether a transformer may count on a GPU; mixed precision needs one.
    transformer (Optional[str]): Name or path of a Hugging Face encoder, instead of the default.
    RETURNS (Config): The filled config, with its variables.
    """
    if method not in METHODS:
        raise ValueError(Errors.R200.format(kind="method", value=method, known=_names(METHODS)))
    if encoder not in ENCODERS:
        raise ValueError(Errors.R200.format(kind="encoder", value=encoder, known=_names(ENCODERS)))
    config = Config()
    for block in ENCODERS[encoder].blocks:
        config = config.merge(_read_block("encoders", block))
    listener = config.pop(_LISTENER)
    head_settings, parser_settings = config.pop(_HEAD, {}), config.pop(_PARSER, {})
    method_block = _read_block("methods", method)
    for component in method_block["components"].values():
        component["model"]["tok2vec"] = listener
        if component["factory"].startswith("robust_"):
            component.update(head_settings)
        elif component["factory"] == "ner":
            component["model"].update(parser_settings)
    config = config.merge(method_block)
    config["nlp"]["lang"] = lang
    if "transformer" in config["components"]:
        model = config["components"]["transformer"]["model"]
        model["name"] = transformer or model["name"]
        if not gpu:
            model["mixed_precision"] = False
            config["system"]["gpu_allocator"] = None
    config["nlp"]["pipeline"] = [ENCODERS[encoder].component, *method_block["components"]]
    filled: Config = load_model_from_config(config, auto_fill=True).config
    return filled


def config_text(config: Config) -> str:
    """Write a config with each top-level section in one piece, in spaCy's usual order.

    config (Config): The config.
    RETURNS (str): The text of the .cfg file, with its variables.
    """
    names = sorted(config, key=CONFIG_SECTION_ORDER.index)
    sections = (Config({name: config[name]}).to_str(interpolate=False) for name in names)
    return "\n\n".join(sections) + "\n"


def _read_block(folder: str, name: str) -> Config:
    block = files(__package__) / folder / f"{name}.cfg"
    return load_config_from_str(block.read_text(encoding="utf8"))


def _names(known: dict) -> str:
    return ", ".join(sorted(known))
