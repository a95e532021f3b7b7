"""The training corpora of an experiment: parts joined and labels masked, once for all cells."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from itertools import islice
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


def locate_corpus(dataset: Dataset, masking: Masking | None, output: Path) -> TrainingCorpus:
    """Say where the training corpus of a dataset is once it is prepared.

    dataset (Dataset): The data.
    masking (Optional[Masking]): What they lose.
    output (Path): The directory of the experiment.
    RETURNS (TrainingCorpus): The corpus; one that needs no change is used where it is.
    """
    whole = _locate_joined(dataset, output)
    if masking is None:
        return TrainingCorpus(whole, dataset.gold)
    directory = _directory(output, dataset, masking.name)
    # Like the source, a file or a directory of shards.
    suffix = "" if whole.is_dir() else SUFFIX
    return TrainingCorpus(directory / f"train{suffix}", dataset.gold or directory / f"gold{suffix}")


def prepare_corpus(dataset: Dataset, masking: Masking | None, output: Path) -> TrainingCorpus:
    """Make the training corpus of a dataset, unless it is there from an earlier run.

    RETURNS (TrainingCorpus): The corpus, as locate_corpus says.
    """
    whole = _locate_joined(dataset, output)
    if not whole.exists() and _is_joined(dataset):
        write_docs(_flagged(dataset.train), whole)
    corpus = locate_corpus(dataset, masking, output)
    # Masking publishes the training data last.
    if masking is not None and not corpus.path.exists():
        directory = corpus.path.parent
        mask_corpus(
            whole,
            corpus.path,
            directory / f"gold{corpus.path.suffix}",
            directory / "dropped.jsonl",
            probability=masking.rate,
            seed=masking.seed,
            by_surface=masking.kind == "surface",
            exact=masking.exact,
        )
    return corpus


def corpus_hash(path: Path) -> str:
    """RETURNS (str): A hash of all files of a corpus."""
    files = docbin_paths(path)
    return _content_hash(tuple((file, file.stat().st_mtime_ns) for file in files))


@cache
def _content_hash(files: tuple[tuple[Path, int], ...]) -> str:
    digest = hashlib.sha256()
    for path, _ in files:
        with path.open("rb") as file:
            while chunk := file.read(2**20):
                digest.update(chunk)
    return digest.hexdigest()[:16]


def _is_joined(dataset: Dataset) -> bool:
    (first, *others) = dataset.train
    return bool(others) or first != Part(first.path)


def _locate_joined(dataset: Dataset, output: Path) -> Path:
    if not _is_joined(dataset):
        return dataset.train[0].path
    return _directory(output, dataset, "joined") / f"train{SUFFIX}"


def _directory(output: Path, dataset: Dataset, what: str) -> Path:
    parts = [(corpus_hash(part.path), part.complete, part.limit) for part in dataset.train]
    made_from = srsly.json_dumps([parts, what, version("spacy-robust-ner")])
    digest = hashlib.sha256(made_from.encode("utf8")).hexdigest()[:12]
    return output / CORPORA / f"{dataset.name}--{what}--{digest}"


def _flagged(parts: tuple[Part, ...]) -> Iterator[Doc]:
    for part in parts:
        for doc in islice(stream_docs(part.path), part.limit):
            if part.complete is not None:
                set_complete(doc, part.complete)
            yield doc
