"""The README is true: its examples run, its tables are those of the package."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from spacy_robust_ner.recipes import METHODS

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf8")


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def test_python_example_runs(capsys):
    (example,) = blocks("python")
    exec(compile(example, "README.md", "exec"), {})
    printed = capsys.readouterr().out
    assert "('Ada', 'PER'" in printed
    assert "('London', 'LOC'" in printed


def test_linked_files_are_there():
    links = re.findall(r"\]\(([^)#]+)\)", README)
    local = [link for link in links if "://" not in link]
    assert len(local) > 5
    assert [link for link in local if not (ROOT / link).exists()] == []


@pytest.mark.slow
def test_command_line_example_runs(tmp_path):
    (example,) = [block for block in blocks("bash") if block.startswith("spacy-robust-ner convert")]
    shutil.copytree(ROOT / "assets" / "sample", tmp_path / "assets" / "sample")
    modules = {"spacy-robust-ner": "spacy_robust_ner", "spacy": "spacy"}
    for line in example.splitlines():
        program, *arguments = shlex.split(line)
        command = [sys.executable, "-m", modules[program], *arguments]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
    assert re.search(r"all +\d+\.\d+", done.stdout)


def test_method_table_is_the_catalogue():
    for method in METHODS.values():
        assert f"| `{method.name}` | {method.title} | {method.idea} | {method.source} |" in README


def test_commands_are_the_ones_that_ci_and_users_run():
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf8")
    assert 'pip install -c constraints.txt -e ".[test]" && pytest' in README
    assert 'pip install --quiet -c constraints.txt -e ".[test]"\npytest' in ci
