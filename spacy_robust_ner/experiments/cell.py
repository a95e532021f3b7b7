"""One run of an experiment: train and evaluate, in a process of its own.

``python -m spacy_robust_ner.experiments.cell run.json``
"""

import sys
from pathlib import Path
from time import perf_counter

import spacy
import srsly
from spacy.cli.train import train

from ..corpus.io import read_docs
from ..diagnostics.evaluation import evaluate_pipeline

SETTINGS_FILE = "run.json"
METRICS_FILE = "metrics.json"


def run_cell(settings_path: Path) -> None:
    """Train a pipeline and write the figures of its best checkpoint beside the settings.

    settings_path (Path): A JSON file with config, overrides, test and gpu_id. The pipeline and the
        figures go into its directory.
    """
    settings = srsly.read_json(settings_path)
    directory = settings_path.parent
    started = perf_counter()
    train(
        Path(settings["config"]),
        directory,
        use_gpu=settings["gpu_id"],
        overrides=settings["overrides"],
    )
    trained = perf_counter()
    nlp = spacy.load(directory / "model-best")
    evaluation = evaluate_pipeline(nlp, read_docs(Path(settings["test"]), nlp.vocab))
    srsly.write_json(
        directory / METRICS_FILE,
        {"training_seconds": trained - started, "test": evaluation.as_dict()},
    )


if __name__ == "__main__":
    run_cell(Path(sys.argv[1]))
