"""One run of an experiment: train and evaluate, in a process of its own.

``python -m spacy_robust_ner.experiments.cell DIRECTORY RUNNER``, where RUNNER is the id of the
process that starts it.
"""

import os
import platform
import shutil
import sys
import threading
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

import spacy
import srsly
import torch
from spacy.cli.train import train
from spacy.language import Language

from ..diagnostics.evaluation import find_spans_key
from .predictions import test_predictions, train_predictions

CONFIG_FILE = "config.cfg"
SETTINGS_FILE = "settings.json"
RESULT_FILE = "result.json"
HISTORY_FILE = "history.jsonl"
PREDICTIONS_FILE = "predictions.jsonl"
MODEL = "model-best"


def run_cell(directory: Path) -> None:
    """Train a pipeline, and write the figures and predictions of its best checkpoint.

    directory (Path): Holds the config and the settings, and gets everything else; the result
        comes last.
    """
    started = perf_counter()
    settings = srsly.read_json(directory / SETTINGS_FILE)
    train(
        directory / CONFIG_FILE,
        directory,
        use_gpu=settings["gpu_id"],
        overrides={"training.logger.output_file": str(directory / HISTORY_FILE)},
    )
    trained = perf_counter()
    shutil.rmtree(directory / "model-last", ignore_errors=True)
    nlp = spacy.load(directory / MODEL)
    evaluation, records = test_predictions(nlp, Path(settings["test"]))
    recovery = None
    if settings["gold"] is not None:
        recovery, seen = train_predictions(
            nlp, Path(settings["train"]), Path(settings["gold"]), settings["recovery_documents"]
        )
        records += seen
    srsly.write_jsonl(directory / PREDICTIONS_FILE, records)
    if not settings["keep_model"]:
        shutil.rmtree(directory / MODEL)
    result = {
        **settings["result"],
        "training_seconds": trained - started,
        "seconds": perf_counter() - started,
        "peak_bytes": peak_memory(),
        "threads": torch.get_num_threads(),
        **_device(settings["gpu_id"]),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "dev_f1": dev_f1(nlp),
        "test": evaluation.as_dict(),
        "recovery": None if recovery is None else recovery.as_dict(),
        "fingerprint": settings["fingerprint"],
    }
    (directory / SETTINGS_FILE).unlink()
    srsly.write_json(directory / RESULT_FILE, result)


def dev_f1(nlp: Language) -> float | None:
    """RETURNS (Optional[float]): What a trained pipeline's best checkpoint reached in training."""
    key = find_spans_key(nlp)
    score: float | None = nlp.meta["performance"].get("ents_f" if key is None else f"spans_{key}_f")
    return score


def peak_memory() -> int | None:
    """RETURNS (Optional[int]): The most memory that this process has had, in bytes, where the
    system tells.
    """
    status = Path("/proc/self/status")
    if status.is_file():
        # Unlike getrusage, it knows nothing of the process that started this one.
        fields = dict(line.split(":", 1) for line in status.read_text().splitlines())
        return int(fields["VmHWM"].split()[0]) * 1024
    if find_spec("resource") is None:
        return None
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak * (1 if sys.platform == "darwin" else 1024)


def _device(gpu_id: int) -> dict[str, Any]:
    if gpu_id < 0:
        return {"device": "cpu", "peak_gpu_bytes": None}
    if not torch.cuda.is_available():
        return {"device": "gpu", "peak_gpu_bytes": None}
    return {
        "device": torch.cuda.get_device_name(gpu_id),
        "peak_gpu_bytes": torch.cuda.max_memory_allocated(gpu_id),
    }


def _end_with(runner: int) -> None:
    """A runner that is killed can't end its cells, so they look after themselves."""

    def watch() -> None:
        while os.getppid() == runner:
            sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


if __name__ == "__main__":
    _end_with(int(sys.argv[2]))
    run_cell(Path(sys.argv[1]))
