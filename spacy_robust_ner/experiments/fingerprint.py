"""What a result depends on, so that it can be kept, repeated or thrown away."""

import hashlib
from importlib.metadata import version
from pathlib import Path
from typing import Any

import srsly

from ..corpus.io import docbin_paths
from .matrix import Cell, Matrix

_PACKAGES = ("spacy-robust-ner", "spacy", "thinc", "torch", "spacy-transformers")


def fingerprint(cell: Cell, matrix: Matrix, overrides: dict[str, Any]) -> dict[str, Any]:
    """Describe everything that decides the result of a run.

    cell (Cell): The run.
    matrix (Matrix): Its experiment.
    overrides (Dict[str, Any]): The settings that the run changes in its config.
    RETURNS (Dict[str, Any]): Hashes, settings and versions; equal for equal runs.
    """
    return {
        "config": _file_hash([cell.config]),
        "train": _file_hash(docbin_paths(cell.corpus.path)),
        "dev": _file_hash(docbin_paths(matrix.dev)),
        "test": _file_hash(docbin_paths(matrix.test)),
        "overrides": srsly.json_loads(srsly.json_dumps(overrides)),
        "seed": cell.seed,
        "versions": {package: version(package) for package in _PACKAGES},
    }


def _file_hash(paths: list[Path]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
