from pathlib import Path

import pytest
from spacy.util import load_config_from_str, load_model_from_config

from spacy_robust_ner.experiments.config import cell_config, final_text
from spacy_robust_ner.experiments.matrix import Cell, Dataset, EncoderChoice, Part, Variant

CONFIGS = Path(__file__).parents[2] / "configs"


def cell(method="span-nsv", encoder="cnn", lang="en", **overrides):
    data = Dataset("x", (Part(Path("t")),), dev=Path("d"), test=Path("e"), lang=lang)
    variant = Variant(method, method, method)
    return Cell(data, None, variant, EncoderChoice(encoder, encoder), 3, overrides)


def test_settings_arrive(tmp_path):
    sampler = "components.robust_span_ner.sampler"
    config = cell_config(cell(**{f"{sampler}.rate": 0.7}), None, gpu=False)
    assert config["components"]["robust_span_ner"]["sampler"]["rate"] == 0.7
    # Without a trace for the next one.
    config = cell_config(cell(), None, gpu=False)
    assert config["components"]["robust_span_ner"]["sampler"]["rate"] == 0.35


def test_blocks_are_replaced_as_a_whole():
    sampler = {"@misc": "spacy_robust_ner.AllSampler.v1"}
    overrides = {
        "components.robust_span_ner.sampler": sampler,
        "components.robust_span_ner.retrieval": None,
    }
    config = cell_config(cell("scl-rai-ns", **overrides), None, gpu=False)
    text = final_text(config, train=Path("a"), dev=Path("b"), seed=3)
    read = load_config_from_str(text, interpolate=True)
    assert read["components"]["robust_span_ner"]["sampler"] == sampler
    assert read["components"]["robust_span_ner"]["retrieval"] is None
    assert (read["paths"]["train"], read["training"]["seed"]) == ("a", 3)
    nlp = load_model_from_config(load_config_from_str(text), auto_fill=True)
    assert type(nlp.get_pipe("robust_span_ner").sampler).__name__ == "AllSampler"


@pytest.mark.parametrize("configs", [None, CONFIGS])
def test_language_reaches_the_tokenizer(configs):
    config = cell_config(cell(lang="zh"), configs, gpu=False)
    text = final_text(config, train=Path("a"), dev=Path("b"), seed=0)
    nlp = load_model_from_config(load_config_from_str(text), auto_fill=True)
    assert [token.text for token in nlp.make_doc("我在北京")] == ["我", "在", "北", "京"]


@pytest.mark.parametrize("configs", [None, CONFIGS])
@pytest.mark.parametrize("gpu", [True, False])
def test_mixed_precision_needs_a_gpu(configs, gpu):
    config = cell_config(cell(encoder="trf"), configs, gpu=gpu)
    assert config["components"]["transformer"]["model"]["mixed_precision"] is gpu
    assert config["system"]["gpu_allocator"] == ("pytorch" if gpu else None)


def test_own_configs_equal_the_files():
    assert cell_config(cell(), None, gpu=False) == cell_config(cell(), CONFIGS, gpu=False)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("components.robust_span_ner.sampler.ratte", r"Known there: @misc, rate, "),
        ("components.ner.model", "no such block"),
        ("training.dropout.rate", "no such block"),
        ("paths.train", "R206"),
        ("nlp.lang", "R206"),
    ],
)
def test_unknown_settings_are_named(setting, message):
    with pytest.raises(ValueError, match=message) as error:
        cell_config(cell(**{setting: 1}), None, gpu=False)
    assert setting in str(error.value)
    assert "x--given--span-nsv--cnn--seed3" in str(error.value)


def test_missing_config_says_how_to_write_it(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"init-config .*span-nsv-cnn\.cfg"):
        cell_config(cell(), tmp_path, gpu=False)
