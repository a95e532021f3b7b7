"""The training corpora of an experiment: parts joined and labels masked, once for all cells."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path

import srsly
from spacy.tokens import Doc

from ..annotation import set_complete
from ..corpus.doc_stream import stream_docs
from ..corpus.io import SUFFIX, docbin_paths, write_docs
from ..corpus.mask import mask_corpus
from .matrix import Dataset, Masking, Part

CORPORA = "corpora"


@dataclass(frozen=True)
class TrainingCorpus:
    """What cells train on.

    path (Path): The .spacy file or directory.
    gold (Optional[Path]): The same documents with the entities that were masked, if known.
    """

    path: Path
    gold: Path | None


def prepare_corpus(dataset: Dataset, masking: Masking | None, output: Path) -> TrainingCorpus:
    """Make the training corpus of a dataset, or find it from an earlier run.

    dataset (Dataset): The data.
    masking (Optional[Masking]): What they lose.
    output (Path): The directory of the experiment.
    RETURNS (TrainingCorpus): The corpus; one that needs no change is used where it is.
    """
    whole = _joined(dataset, output / CORPORA)
    if masking is None:
        return TrainingCorpus(whole, dataset.gold)
    made_from = [corpus_hash(whole), masking.name]
    directory = output / CORPORA / f"{dataset.name}--{masking.name}--{_hash(made_from)}"
    # Like the source, a file or a directory of shards.
    suffix = "" if whole.is_dir() else SUFFIX
    target, gold = directory / f"train{suffix}", directory / f"gold{suffix}"
    # Masking publishes the training data last.
    if not target.exists():
        mask_corpus(
            whole,
            target,
            gold,
            directory / "dropped.jsonl",
            probability=masking.rate,
            seed=masking.seed,
            by_surface=masking.kind == "surface",
            exact=masking.exact,
        )
    return TrainingCorpus(target, dataset.gold or gold)


@cache
def corpus_hash(path: Path) -> str:
    """RETURNS (str): A hash of all files of a corpus."""
    digest = hashlib.sha256()
    for file in docbin_paths(path):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def _joined(dataset: Dataset, directory: Path) -> Path:
    if len(dataset.train) == 1 and dataset.train[0].complete is None:
        return dataset.train[0].path
    made_from = [(corpus_hash(part.path), part.complete) for part in dataset.train]
    target = directory / f"{dataset.name}--{_hash(made_from)}" / f"train{SUFFIX}"
    if not target.exists():
        write_docs(_flagged(dataset.train), target)
    return target


def _flagged(parts: tuple[Part, ...]) -> Iterator[Doc]:
    for part in parts:
        for doc in stream_docs(part.path):
            if part.complete is not None:
                set_complete(doc, part.complete)
            yield doc


def _hash(made_from: object) -> str:
    text = srsly.json_dumps([made_from, version("spacy-robust-ner")])
    return hashlib.sha256(text.encode("utf8")).hexdigest()[:12]
