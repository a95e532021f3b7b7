"""The results of an experiment: one file a cell, and all of them together as JSON lines."""

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import srsly

from .cell import RESULT_FILE
from .jobs import FAILURE_FILE

RESULTS_FILE = "results.jsonl"
FAILURES_FILE = "failures.jsonl"


def valid_result(output: Path, name: str, fingerprint: dict[str, Any]) -> dict[str, Any] | None:
    """RETURNS (Optional[Dict[str, Any]]): A cell's result, if it is one of the same run."""
    path = output / name / RESULT_FILE
    if not path.is_file():
        return None
    result: dict[str, Any] = srsly.read_json(path)
    return result if result["fingerprint"] == fingerprint else None


def write_results(output: Path, results: Iterable[dict[str, Any]]) -> None:
    """Write the tidy table of finished cells, at once.

    output (Path): The directory of the experiment.
    results (Iterable[Dict[str, Any]]): The results.
    """
    _write_jsonl(output / RESULTS_FILE, results)


def write_failures(output: Path, names: Iterable[str]) -> None:
    """Write the table of cells that ended with an error; without any, there is no such file.

    output (Path): The directory of the experiment.
    names (Iterable[str]): The cells.
    """
    failures = [srsly.read_json(output / name / FAILURE_FILE) for name in names]
    if failures:
        _write_jsonl(output / FAILURES_FILE, failures)
    else:
        (output / FAILURES_FILE).unlink(missing_ok=True)


def _write_jsonl(path: Path, lines: Iterable[dict[str, Any]]) -> None:
    handle, staging = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    try:
        with open(handle, "w", encoding="utf8", newline="\n") as file:
            for line in lines:
                file.write(srsly.json_dumps(line) + "\n")
        os.chmod(staging, 0o644)
        os.replace(staging, path)
    finally:
        Path(staging).unlink(missing_ok=True)
