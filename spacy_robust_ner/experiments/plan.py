"""Everything that a cell needs to run, and everything that its result depends on."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import srsly

from ..recipes import config_text
from .config import cell_config, final_text
from .corpora import corpus_hash, prepare_corpus
from .matrix import Cell, Matrix

_PACKAGES = ("spacy-robust-ner", "spacy", "thinc", "torch", "spacy-transformers")


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


def make_plans(matrix: Matrix, output: Path, *, gpu: bool) -> dict[str, Plan]:
    """Prepare all cells, so that what is wrong with one of them is known before the first runs.

    matrix (Matrix): The experiment.
    output (Path): Its directory, which gets the masked corpora.
    gpu (bool): Whether the cells run on GPUs.
    RETURNS (Dict[str, Plan]): The plans by name of the cell; a cell comes after its first stage.
    """
    plans: dict[str, Plan] = {}
    cells = sorted(matrix.cells(), key=lambda cell: cell.first_stage is not None)
    stages = {cell.first_stage for cell in cells}
    versions = {package: version(package) for package in _PACKAGES}
    for cell in cells:
        config = cell_config(cell, matrix.configs, gpu=gpu)
        corpus = prepare_corpus(cell.dataset, cell.masking, output)
        fingerprint = {
            "config": _text_hash(config_text(config)),
            "train": corpus_hash(corpus.path),
            "dev": corpus_hash(cell.dataset.dev),
            "test": corpus_hash(cell.dataset.test),
            "gold": None if corpus.gold is None else corpus_hash(corpus.gold),
            "recovery_documents": matrix.recovery_documents,
            "overrides": _as_json(cell.overrides),
            "seed": cell.seed,
            "versions": versions,
        }
        if cell.first_stage is not None:
            fingerprint["first_stage"] = plans[cell.first_stage].fingerprint
            config["paths"]["first_stage"] = str(output / cell.first_stage / "model-best")
        settings = {
            "result": _as_json(cell.as_dict()),
            "train": str(corpus.path),
            "gold": None if corpus.gold is None else str(corpus.gold),
            "test": str(cell.dataset.test),
            "recovery_documents": matrix.recovery_documents,
            "keep_model": matrix.keep_models or cell.name in stages,
            "gpu_id": 0 if gpu else -1,
            "fingerprint": fingerprint,
        }
        text = final_text(config, train=corpus.path, dev=cell.dataset.dev, seed=cell.seed)
        plans[cell.name] = Plan(cell, text, settings)
    return plans


def _text_hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf8")).hexdigest()[:16]


def _as_json(data: Mapping[str, Any]) -> dict[str, Any]:
    """What the data become in a file, to be compared with what is read from one."""
    read: dict[str, Any] = srsly.json_loads(srsly.json_dumps(dict(data)))
    return read
