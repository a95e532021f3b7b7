"""Everything that a cell needs to run, and everything that its result depends on."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import srsly

from ..recipes import config_text
from .cell import MODEL
from .config import cell_config, final_text
from .corpora import corpus_hash, locate_corpus, prepare_corpus
from .matrix import Cell, Matrix

_PACKAGES = (
    "spacy-robust-ner",
    "spacy",
    "thinc",
    "torch",
    "spacy-transformers",
    "transformers",
)


@dataclass(frozen=True)
class Plan:
    """A cell that is ready to run.

    cell (Cell): The cell.
    config (str): The text of its config.
    settings (Dict[str, Any]): What the cell's process reads.
    """

    cell: Cell
    config: str
    settings: dict[str, Any]

    @property
    def fingerprint(self) -> dict[str, Any]:
        """RETURNS (Dict[str, Any]): What decides the result; equal for equal runs."""
        fingerprint: dict[str, Any] = self.settings["fingerprint"]
        return fingerprint


def make_plans(matrix: Matrix, output: Path, *, gpu: bool, prepare: bool = True) -> dict[str, Plan]:
    """Prepare all cells, so that what is wrong with one of them is known before the first runs.

    matrix (Matrix): The experiment.
    output (Path): Its directory, which gets the masked corpora.
    gpu (bool): Whether the cells run on GPUs.
    prepare (bool): Whether to make the corpora; if not, nothing is written, and the plans are good
        for finding out which cells are finished.
    RETURNS (Dict[str, Plan]): The plans by name of the cell.
    """
    find_corpus = prepare_corpus if prepare else locate_corpus
    cells = list(matrix.cells())
    stages = {cell.first_stage for cell in cells}
    plans: dict[str, Plan] = {}
    for cell in sorted(cells, key=lambda cell: cell.first_stage is not None):
        config = cell_config(cell, matrix.configs, gpu=gpu)
        corpus = find_corpus(cell.dataset, cell.masking, output)
        fingerprint = {
            "config": _text_hash(config_text(config)),
            "train": corpus_hash(corpus.path) if prepare or corpus.path.exists() else None,
            "dev": corpus_hash(cell.dataset.dev),
            "test": corpus_hash(cell.dataset.test),
            "overrides": _as_json(cell.overrides),
            "seed": cell.seed,
            "recovery_documents": matrix.recovery_documents,
            "versions": _versions(),
        }
        if cell.dataset.gold is not None:
            fingerprint["gold"] = corpus_hash(cell.dataset.gold)
        if cell.first_stage is not None:
            fingerprint["first_stage"] = plans[cell.first_stage].fingerprint
            config["paths"]["first_stage"] = str(output / cell.first_stage / MODEL)
        settings = {
            "result": _as_json(cell.as_dict()),
            "train": str(corpus.path),
            "gold": None if corpus.gold is None else str(corpus.gold),
            "test": str(cell.dataset.test),
            "recovery_documents": matrix.recovery_documents,
            "keep_model": matrix.keep_models or cell.name in stages,
            "gpu_id": 0 if gpu else -1,
            "max_epochs": config["training"]["max_epochs"],
            "max_steps": config["training"]["max_steps"],
            "fingerprint": fingerprint,
        }
        text = final_text(config, train=corpus.path, dev=cell.dataset.dev, seed=cell.seed)
        plans[cell.name] = Plan(cell, text, settings)
    return {cell.name: plans[cell.name] for cell in cells}


@cache
def _versions() -> dict[str, str]:
    return {package: version(package) for package in _PACKAGES}


def _text_hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf8")).hexdigest()[:16]


def _as_json(data: Mapping[str, Any]) -> dict[str, Any]:
    """What the data become in a file, to be compared with what is read from one."""
    read: dict[str, Any] = srsly.json_loads(srsly.json_dumps(dict(data)))
    return read
