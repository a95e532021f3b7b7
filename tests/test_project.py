"""The project, end to end, on a few documents of the shipped corpus."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import srsly
from spacy.util import load_model_from_config
from weasel.util.config import load_project_config

from spacy_robust_ner.experiments.config import cell_config
from spacy_robust_ner.experiments.matrix_file import load_matrix
from spacy_robust_ner.recipes import METHODS

ROOT = Path(__file__).parents[1]
PROJECT = srsly.read_yaml(ROOT / "project.yml")
COMMANDS = {command["name"]: command for command in PROJECT["commands"]}
EXPERIMENTS = sorted((ROOT / "configs" / "experiments").glob("*.yml"))
SMALL = [path for path in EXPERIMENTS if path.stem.endswith("-small")]


@pytest.fixture
def project(tmp_path):
    shutil.copy(ROOT / "project.yml", tmp_path)
    shutil.copytree(ROOT / "configs", tmp_path / "configs")
    for part, documents in (("train", 60), ("dev", 20), ("test", 20)):
        lines = (ROOT / "assets" / "sample" / f"{part}.conll").read_text(encoding="utf8")
        kept = lines.split("-DOCSTART-")[: documents + 1]
        path = tmp_path / "assets" / "sample" / f"{part}.conll"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("-DOCSTART-".join(kept), encoding="utf8")
    shorten(tmp_path, "sample", methods=["ner", "span-segments"])
    shorten(tmp_path, "figures-small")
    return tmp_path


def shorten(project, name, **fields):
    """Let an experiment take a few steps, with other fields than its own."""
    path = project / "configs" / "experiments" / f"{name}.yml"
    steps = {"training.max_steps": 20, "training.eval_frequency": 10}
    srsly.write_yaml(path, {**srsly.read_yaml(path), "overrides": steps, **fields})


def run(project, *arguments):
    command = [sys.executable, "-m", "spacy", "project", "run", *map(str, arguments)]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def outputs(name):
    paths = COMMANDS[name].get("outputs", [])
    return [path.replace("${vars.experiment}", "sample") for path in paths]


@pytest.mark.slow
def test_all_runs_once_and_again_only_for_changes(project):
    first = run(project, "all")
    for name in PROJECT["workflows"]["all"]:
        for path in outputs(name):
            assert (project / path).exists(), f"{name} does not make {path}"
    report = (project / "metrics" / "sample" / "report.md").read_text(encoding="utf8")
    assert "| spaCy ner |" in report
    assert "| span segments + ratio |" in report
    assert "6 runs trained" in first

    assert run(project, "all").count("Skipping") == len(PROJECT["workflows"]["all"])

    config = project / "configs" / "baseline" / "ner-cnn.cfg"
    text = config.read_text(encoding="utf8")
    config.write_text(text.replace("hidden_width = 64", "hidden_width = 32"), encoding="utf8")
    assert "3 runs trained, 3 kept" in run(project, "all")

    run(project, "clean")
    assert not (project / "training").exists()


@pytest.mark.slow
def test_one_run_on_data_given_by_vars(project, tmp_path):
    settings = {
        "data": project / "assets",
        "dataset": "sample",
        "train_file": "train.conll",
        "dev_file": "dev.conll",
        "test_file": "test.conll",
        "method": "span-ns",
        "mask_rate": 0.5,
        "max_steps": 200,
    }
    arguments = [part for name, value in settings.items() for part in (f"--vars.{name}", value)]
    run(project, "one", project, *arguments)
    metrics = project / "training" / "sample-0.5-span-ns-cnn-0" / "metrics.json"
    assert srsly.read_json(metrics)["documents"] > 0


@pytest.mark.slow
def test_drawings_of_the_papers(project):
    run(project, "figures-small")
    for name in PROJECT["workflows"]["figures-small"]:
        for path in outputs(name):
            assert (project / path).exists(), f"{name} does not make {path}"
    rates = srsly.read_json(project / "metrics" / "figures-small" / "missampling-by-masking.json")
    assert [float(share) for share in rates] == [0.1, 0.3, 0.5, 0.7, 0.9]


def experiments_of(command):
    """The experiment files that a command runs."""
    lines = [line.split() for line in COMMANDS[command]["script"]]
    found = [ROOT / next(p for p in parts if p.endswith(".yml")) for parts in lines]
    return list(dict.fromkeys(path for path in found if "${" not in path.name))


def test_workflows_make_the_corpora_of_their_experiments():
    run_somewhere = set()
    for name, steps in PROJECT["workflows"].items():
        made = {path for step in steps for path in COMMANDS[step].get("outputs", [])}
        running = [step for step in steps if step.startswith("run-")]
        for path in (path for step in running for path in experiments_of(step)):
            run_somewhere.add(path)
            for data in load_matrix(path).datasets:
                needed = [data.dev, data.test, *(part.path for part in data.train)]
                for corpus in [*needed, *([data.gold] if data.gold else [])]:
                    assert str(corpus) in made, f"{name} does not make {corpus}"
    everything = set((ROOT / "configs" / "experiments").glob("*.yml"))
    assert everything - run_somewhere == {ROOT / "configs" / "experiments" / "sample.yml"}


@pytest.mark.parametrize("encoder", ["given", "cnn", "some/transformer"])
@pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda path: path.stem)
def test_experiments_fit_the_configs(path, encoder):
    matrix = load_matrix(path, encoder=encoder)
    for cell in matrix.cells():
        first = (cell.dataset.masking or matrix.masking)[0]
        if (cell.seed, cell.masking) == (matrix.seeds[0], first):
            cell_config(cell, ROOT / "configs", gpu=False)


@pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda path: path.stem)
def test_experiments_say_whether_data_that_nothing_masks_are_complete(path):
    """Sampling makes no difference in complete documents, whose unlabeled spans all count."""
    commands = [line.split() for command in COMMANDS.values() for line in command["script"]]
    vouched_for = {words[4] for words in commands if "--complete" in words}
    matrix = load_matrix(path)
    for dataset in matrix.datasets:
        if None not in (dataset.masking or matrix.masking):
            continue
        for part in dataset.train:
            assert str(part.path) not in vouched_for or part.complete is not None


@pytest.mark.parametrize("name", ["compare", "compare-small"])
def test_every_method_is_compared(name):
    matrix = load_matrix(ROOT / "configs" / "experiments" / f"{name}.yml")
    assert {cell.variant.method for cell in matrix.cells()} == set(METHODS)


@pytest.mark.slow
@pytest.mark.parametrize("path", SMALL, ids=lambda path: path.stem)
def test_pipelines_of_small_experiments_can_be_made(path):
    seen = set()
    for cell in load_matrix(path).cells():
        if cell.variant.name not in seen:
            seen.add(cell.variant.name)
            load_model_from_config(cell_config(cell, ROOT / "configs", gpu=False), auto_fill=True)


def test_every_dependency_is_an_asset_a_file_or_an_output():
    known = {asset["dest"] for asset in PROJECT["assets"]}
    known |= {path for command in COMMANDS.values() for path in command.get("outputs", [])}
    for name, command in COMMANDS.items():
        for path in command.get("deps", []):
            if "${vars.data}" not in path:
                assert (
                    path in known or (ROOT / path.replace("${vars.experiment}", "sample")).exists()
                ), name


def test_variables_leave_lists_as_they_are():
    # A list whose items end in a variable comes out of the interpolation as one string.
    loaded = load_project_config(ROOT)
    for name, raw in COMMANDS.items():
        (command,) = [command for command in loaded["commands"] if command["name"] == name]
        for key in ("script", "deps", "outputs"):
            assert len(command.get(key, [])) == len(raw.get(key, [])), f"{key} of {name}"


def test_readme_documents_the_project():
    readme = (ROOT / "README.md").read_text(encoding="utf8")
    for name, command in COMMANDS.items():
        assert f"| `{name}` | {command['help']} |" in readme
