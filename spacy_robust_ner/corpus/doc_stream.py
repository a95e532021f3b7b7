"""Streams of documents for tools that need to see a corpus and not to keep it."""

from collections.abc import Iterator
from pathlib import Path

from spacy.tokens import Doc
from spacy.vocab import Vocab
from tqdm import tqdm

from .io import docbin_paths, read_docs


def stream_docs(path: Path, *, description: str = "", show_progress: bool = False) -> Iterator[Doc]:
    """Read a corpus with memory for one shard. Each shard has a vocabulary of its own, since a
    shared one would grow with every new word of the corpus: compare strings, not their ids.

    path (Path): A .spacy file or a directory of them.
    description (str): What the progress bar says.
    show_progress (bool): Draw a progress bar on standard error.
    YIELDS (Doc): The documents.
    """
    with tqdm(desc=description, unit=" docs", disable=not show_progress, leave=False) as bar:
        for file in docbin_paths(path):
            for doc in read_docs(file, Vocab()):
                yield doc
                bar.update()
