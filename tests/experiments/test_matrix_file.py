import re
import sys
from pathlib import Path

import pytest
import srsly

from spacy_robust_ner.experiments.matrix_file import load_matrix

DATA = {"name": "two", "train": "train.spacy", "dev": "dev.spacy", "test": "test.spacy"}


def load(tmp_path, *, encoder="given", **fields):
    path = tmp_path / "experiment.yml"
    srsly.write_yaml(path, {"datasets": [DATA], "methods": ["ner"], **fields})
    return load_matrix(path, encoder=encoder)


def names(matrix):
    return [cell.name for cell in matrix.cells()]


def test_smallest_file(tmp_path):
    matrix = load(tmp_path)
    assert names(matrix) == ["two--given--ner--cnn--seed0"]
    (cell,) = matrix.cells()
    assert matrix.title == "experiment"
    assert (cell.dataset.lang, cell.overrides) == ("en", {})
    assert cell.as_dict()["mask_kind"] is None


def test_everything_is_crossed(tmp_path):
    zh = {**DATA, "name": "zh", "lang": "zh"}
    matrix = load(
        tmp_path,
        datasets=[DATA, zh],
        masking=[0, {"rate": [0.5, 0.8], "kind": ["entity", "surface"]}],
        methods=["ner", "span-ns"],
        encoders=["cnn", {"encoder": "trf", "name": "tiny"}],
        seeds=[1, 2, 3],
    )
    found = names(matrix)
    assert len(found) == len(set(found)) == 2 * 5 * 2 * 2 * 3
    assert "zh--surface-0.8--span-ns--tiny--seed3" in found
    assert "two--given--ner--cnn--seed1" in found
    result = next(c for c in matrix.cells() if c.name.startswith("zh--surface-0.8")).as_dict()
    assert (result["lang"], result["mask_rate"], result["mask_kind"]) == ("zh", 0.8, "surface")


def test_nothing_masked_is_one_cell_whatever_the_kind(tmp_path):
    matrix = load(tmp_path, masking=[{"rate": [0, 0.5], "kind": ["entity", "surface"]}])
    assert [None if m is None else m.name for m in matrix.masking] == [
        None,
        "entity-0.5",
        "surface-0.5",
    ]


def test_settings_are_crossed_and_named(tmp_path):
    rate = "components.robust_span_ner.sampler.rate"
    method = {"method": "span-nsv", "title": "NS-V", "vary": {rate: [0.1, 0.35]}}
    batch = "training.batcher.size"
    matrix = load(tmp_path, methods=["ner", method], vary={batch: [8, 16]}, overrides={batch: 4})
    cells = {cell.variant.name: cell for cell in matrix.cells()}
    assert list(cells) == [
        "ner-size=8",
        "ner-size=16",
        "span-nsv-rate=0.1-size=8",
        "span-nsv-rate=0.1-size=16",
        "span-nsv-rate=0.35-size=8",
        "span-nsv-rate=0.35-size=16",
    ]
    cell = cells["span-nsv-rate=0.1-size=16"]
    assert cell.variant.title == "NS-V, rate = 0.1, size = 16"
    assert cell.overrides == {rate: 0.1, batch: 16}
    assert cell.as_dict()["varied"] == {rate: 0.1, batch: 16}
    assert cell.as_dict()["method"] == "span-nsv"


def test_own_settings_come_before_those_for_all(tmp_path):
    setting, other = "training.dropout", "training.patience"
    matrix = load(
        tmp_path,
        overrides={setting: 0.1, other: 1},
        encoders=[{"encoder": "cnn", "overrides": {setting: 0.2, other: 2}}],
        methods=[{"method": "ner", "overrides": {setting: 0.3}}],
    )
    (cell,) = matrix.cells()
    assert cell.overrides == {setting: 0.3, other: 2}


def test_values_that_are_no_names_become_names(tmp_path):
    method = {"method": "ner", "vary": {"components.transformer.model.name": ["a/b-c", "d"]}}
    matrix = load(tmp_path, methods=[method], encoders=["trf"])
    assert [v.name for v in matrix.methods] == ["ner-name=a-b-c", "ner-name=d"]


def test_dataset_with_masking_and_settings_of_its_own(tmp_path):
    steps = "training.max_steps"
    own = {**DATA, "name": "own", "masking": [0, 0.8], "overrides": {steps: 7}}
    matrix = load(tmp_path, datasets=[DATA, own], masking=[0.5], overrides={steps: 5})
    found = [(c.name.split("--")[:2], c.overrides[steps]) for c in matrix.cells()]
    assert found == [
        (["two", "entity-0.5"], 5),
        (["own", "given"], 7),
        (["own", "entity-0.8"], 7),
    ]


def test_dataset_with_encoders_of_its_own_and_parts(tmp_path):
    parts = ["a.spacy", {"path": "b.spacy", "complete": True}]
    biomedical = {**DATA, "name": "bio", "train": parts, "encoders": ["bilstm"]}
    matrix = load(tmp_path, datasets=[DATA, biomedical], encoders=["cnn", "trf"])
    assert [c.encoder.name for c in matrix.cells()] == ["cnn", "trf", "bilstm"]
    found = [(part.path, part.complete) for part in matrix.datasets[1].train]
    assert found == [(Path("a.spacy"), None), (Path("b.spacy"), True)]


def test_methods_with_settings_in_common_and_with_encoders_of_their_own(tmp_path):
    methods = [
        {"method": ["span-ns", "top-neg"], "overrides": {"training.dropout": 0.2}},
        {"method": "nrces", "encoders": ["large"]},
    ]
    encoders = ["cnn", {"encoder": "trf", "name": "large"}]
    matrix = load(tmp_path, methods=methods, encoders=encoders)
    found = [(cell.variant.name, cell.encoder.name) for cell in matrix.cells()]
    assert found == [
        ("span-ns", "cnn"),
        ("span-ns", "large"),
        ("top-neg", "cnn"),
        ("top-neg", "large"),
        ("nrces", "large"),
    ]
    assert [variant.overrides for variant in matrix.methods] == [
        {"training.dropout": 0.2},
        {"training.dropout": 0.2},
        {},
    ]


@pytest.mark.parametrize(
    ("encoder", "kind", "name", "overrides"),
    [
        ("bilstm", "bilstm", "bilstm", {}),
        ("deberta", "trf", "deberta", {"components.transformer.model.name": "deberta"}),
        ("hub/Mini_LM", "trf", "Mini_LM", {"components.transformer.model.name": "hub/Mini_LM"}),
        ("./my--own/", "trf", "my-own", {"components.transformer.model.name": "./my--own/"}),
    ],
)
def test_one_encoder_for_all_runs(tmp_path, encoder, kind, name, overrides):
    rate = "training.optimizer.learn_rate.initial_rate"
    matrix = load(
        tmp_path,
        encoder=encoder,
        datasets=[DATA, {**DATA, "name": "bio", "encoders": ["trf"]}],
        methods=["span-ns", {"method": "nrces", "encoders": ["large"]}],
        encoders=["cnn", {"encoder": "trf", "name": "large", "overrides": {rate: 0.1}}],
        overrides={"training.dropout": 0.2},
    )
    assert [(c.dataset.name, c.variant.name) for c in matrix.cells()] == [
        ("two", "span-ns"),
        ("two", "nrces"),
        ("bio", "span-ns"),
        ("bio", "nrces"),
    ]
    for cell in matrix.cells():
        assert (cell.encoder.encoder, cell.encoder.name) == (kind, name)
        assert cell.overrides == {"training.dropout": 0.2, **overrides}
        assert f"--{name}--" in cell.name


def test_encoder_without_a_name_is_an_error(tmp_path):
    with pytest.raises(ValueError, match=r"R212.*cnn, bilstm, trf"):
        load(tmp_path, encoder="")


def test_file_with_a_base(tmp_path):
    load(tmp_path, methods=["ner", "spancat"], seeds=[1, 2], title="Base")
    folder = tmp_path / "mine"
    folder.mkdir()
    srsly.write_yaml(folder / "a.yml", {"base": "../experiment.yml", "encoders": ["trf"]})
    srsly.write_yaml(folder / "b.yml", {"base": "a.yml", "seeds": [3]})
    matrix = load_matrix(folder / "b.yml")
    assert matrix.title == "Base"
    assert names(matrix) == ["two--given--ner--trf--seed3", "two--given--spancat--trf--seed3"]

    srsly.write_yaml(folder / "b.yml", {"base": "c.yml"})
    with pytest.raises(FileNotFoundError, match=r"c\.yml"):
        load_matrix(folder / "b.yml")
    srsly.write_yaml(folder / "c.yml", {"base": "b.yml"})
    with pytest.raises(ValueError, match="its own base"):
        load_matrix(folder / "b.yml")
    srsly.write_yaml(folder / "c.yml", {"seds": [3]})
    with pytest.raises(ValueError, match=r"c\.yml.*unknown field of the file 'seds'"):
        load_matrix(folder / "b.yml")


def test_first_stage_is_the_cell_of_the_same_data(tmp_path):
    methods = ["span-ns", {"method": "conf-mpu", "first_stage": "span-ns"}]
    matrix = load(tmp_path, methods=methods, masking=[0.5], seeds=[7])
    stages = {cell.name: cell.first_stage for cell in matrix.cells()}
    assert stages["two--entity-0.5--conf-mpu--cnn--seed7"] == (
        "two--entity-0.5--span-ns--cnn--seed7"
    )


def test_example_of_the_readme(tmp_path):
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf8")
    (example,) = re.findall(r"```yaml\n(.*?)```", readme, flags=re.DOTALL)
    (tmp_path / "my.yml").write_text(example, encoding="utf8")
    matrix = load_matrix(tmp_path / "my.yml")
    assert len(names(matrix)) == 2 * 5 * 7 * 2 * 3
    assert matrix.datasets[1].train[0].complete is True


def test_toml_before_python_3_11_is_a_clear_error(tmp_path, monkeypatch):
    path = tmp_path / "experiment.toml"
    path.write_text('methods = ["ner"]\n', encoding="utf8")
    monkeypatch.setattr(sys, "version_info", (3, 10, 0))
    with pytest.raises(ValueError, match=r"experiment\.toml.*Python 3\.11.*YAML"):
        load_matrix(path)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="TOML is read by Python 3.11 or newer")
def test_toml(tmp_path):
    path = tmp_path / "experiment.toml"
    path.write_text(
        'methods = ["ner", {method = "nrces", overrides = {"training.dropout" = 0.2}}]\n'
        "masking = [0, {rate = 0.5, kind = 'surface'}]\n"
        "[[datasets]]\nname = 'two'\ntrain = 'a'\ndev = 'b'\ntest = 'c'\n",
        encoding="utf8",
    )
    matrix = load_matrix(path)
    assert len(names(matrix)) == 4
    assert matrix.methods[1].overrides == {"training.dropout": 0.2}
    path.write_text("methods = [", encoding="utf8")
    with pytest.raises(ValueError, match=r"experiment\.toml"):
        load_matrix(path)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"methods": ["nner"]}, "unknown method 'nner'; known: ner, "),
        ({"encoders": ["gnn"]}, "unknown encoder 'gnn'"),
        ({"colour": "red"}, "unknown field of the file 'colour'"),
        ({"datasets": [{**DATA, "tset": "x"}]}, "unknown field of a dataset 'tset'"),
        ({"datasets": [{"name": "two", "dev": "x"}]}, "a dataset lacks the field 'train'"),
        ({"datasets": [DATA, DATA]}, "'two' comes twice in datasets"),
        ({"datasets": []}, "'datasets' is empty"),
        ({"datasets": [{**DATA, "name": "a/b"}]}, "can't be the name of a directory"),
        ({"datasets": [{**DATA, "name": "a--b"}]}, "can't be the name of a directory"),
        ({"methods": ["ner", "ner"]}, "'ner' comes twice in methods: give one"),
        ({"methods": "ner"}, "'methods' of the file should be a list"),
        ({"methods": [{"method": "ner", "vary": {"a.b": 3}}]}, "list of values for 'a.b'"),
        ({"methods": [{"method": "conf-mpu", "first_stage": "x"}]}, "first stage of conf-mpu 'x'"),
        ({"methods": [{"method": ["ner", "nrces"], "name": "x"}]}, "can't share a name"),
        ({"methods": [{"method": "ner", "encoders": ["x"]}]}, "encoder of ner 'x'; known: cnn"),
        (
            {
                "methods": [
                    {"method": "span-ns", "encoders": ["cnn"]},
                    {"method": "conf-mpu", "first_stage": "span-ns"},
                ],
                "encoders": ["cnn", "bilstm"],
            },
            "the first stage of conf-mpu, span-ns, does not run with all of its encoders",
        ),
        ({"seeds": [0.5]}, "seed 0.5 is not a whole number"),
        ({"seeds": [1, 1]}, "'1' comes twice in seeds"),
        ({"masking": [80]}, "the rate 80 is no share between 0 and 1"),
        ({"masking": ["a"]}, "the rate 'a' is no share"),
        ({"masking": [{"rate": 0.5, "kind": "word"}]}, "masking kind 'word'; known: entity, sur"),
        ({"masking": [{"kind": "entity"}]}, "an entry of masking lacks the field 'rate'"),
        ({"keep_models": 1}, "'keep_models' of the file should be a bool"),
        ({"recovery_documents": True}, "'recovery_documents' of the file should be a int"),
    ],
)
def test_bad_files_are_explained(tmp_path, fields, message):
    with pytest.raises(ValueError, match="R202") as error:
        load(tmp_path, **fields)
    assert message in str(error.value)
    assert str(tmp_path / "experiment.yml") in str(error.value)


def test_files_that_are_no_mapping_or_not_there(tmp_path):
    (tmp_path / "list.yml").write_text("- a\n- b\n", encoding="utf8")
    with pytest.raises(ValueError, match="the file should be a mapping"):
        load_matrix(tmp_path / "list.yml")
    (tmp_path / "bad.yml").write_text("a: [\n", encoding="utf8")
    with pytest.raises(ValueError, match="R202"):
        load_matrix(tmp_path / "bad.yml")
    with pytest.raises(FileNotFoundError, match="R201"):
        load_matrix(tmp_path / "nothing.yml")
