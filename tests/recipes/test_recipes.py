from pathlib import Path

import pytest
from spacy.cli.init_config import init_config
from spacy.schemas import ConfigSchemaTraining
from spacy.util import load_config, load_model_from_config, registry

from spacy_robust_ner.recipes import ENCODERS, METHODS, config_text, make_config

ROOT = Path(__file__).parents[2]
CONFIGS = sorted((ROOT / "configs").rglob("*.cfg"))
COMBINATIONS = [(method, encoder) for method in METHODS for encoder in ENCODERS]


@pytest.mark.parametrize(("method", "encoder"), COMBINATIONS)
def test_config_on_disk_is_what_the_recipe_makes(method, encoder):
    path = ROOT / "configs" / METHODS[method].group / f"{method}-{encoder}.cfg"
    assert path.read_text(encoding="utf8") == config_text(make_config(method, encoder))


def test_there_are_no_other_configs():
    assert len(CONFIGS) == len(COMBINATIONS)


@pytest.mark.parametrize("path", CONFIGS, ids=lambda p: p.stem)
def test_config_is_complete_and_resolves(path):
    config = load_config(path)
    filled = load_model_from_config(config, auto_fill=True).config
    assert filled == config
    resolved = registry.resolve(
        config.interpolate()["training"], schema=ConfigSchemaTraining, validate=True
    )
    assert resolved["optimizer"] is not None


def outside_of_method(config):
    """What two methods on the same encoder must have in common."""
    shared = {name: dict(config[name]) for name in ("system", "initialize")}
    shared["paths"] = {key: value for key, value in config["paths"].items() if key != "first_stage"}
    shared["training"] = {
        key: value
        for key, value in config["training"].items()
        if key not in ("score_weights", "before_update", "before_to_disk")
    }
    return shared


@pytest.mark.parametrize("encoder", ENCODERS)
def test_methods_differ_in_their_own_blocks_only(encoder):
    reference = outside_of_method(make_config("ner", encoder))
    for method in METHODS:
        assert outside_of_method(make_config(method, encoder)) == reference


def test_transformer_with_and_without_a_gpu():
    with_gpu = make_config("span-ns", "trf", transformer="my/encoder")
    assert with_gpu["components"]["transformer"]["model"]["name"] == "my/encoder"
    assert with_gpu["components"]["transformer"]["model"]["mixed_precision"] is True
    assert with_gpu["system"]["gpu_allocator"] == "pytorch"
    without = make_config("span-ns", "trf", gpu=False)
    assert without["components"]["transformer"]["model"]["mixed_precision"] is False
    assert without["system"]["gpu_allocator"] is None


@pytest.mark.parametrize(("encoder", "gpu"), [("cnn", False), ("bilstm", False), ("trf", True)])
def test_parser_is_the_one_that_spacy_recommends(encoder, gpu):
    recommended = init_config(lang="en", pipeline=["ner"], gpu=gpu)["components"]["ner"]["model"]
    own = make_config("ner", encoder)["components"]["ner"]["model"]
    assert {**own, "tok2vec": None} == {**recommended, "tok2vec": None}


def test_language_is_set():
    assert make_config("ner", "cnn", lang="zh")["nlp"]["lang"] == "zh"


@pytest.mark.parametrize(("method", "encoder"), [("nerr", "cnn"), ("ner", "gnn")])
def test_unknown_names_are_listed(method, encoder):
    with pytest.raises(ValueError, match=r"R200.*Known: .*"):
        make_config(method, encoder)
