"""spaCy's own corpora: .spacy files, and the JSON of spaCy 2 through spaCy's converter."""

from collections.abc import Iterator

from spacy.tokens import Doc
from spacy.training.converters.json_to_docs import json_to_docs
from spacy.vocab import Vocab

from ..io import docbin_paths, read_docs
from ..records import BadRecord
from ..source import Source, require
from ..streams import Item, read_json


def read_docbin(source: Source) -> Iterator[Doc]:
    """Read .spacy files with all that they hold.

    source (Source): A file, or a directory of shards.
    YIELDS (Doc): The documents.
    """
    for file in docbin_paths(source.path):
        yield from read_docs(file, source.nlp.vocab if source.shares_vocab else Vocab())


def read_legacy_json(source: Source) -> Iterator[Doc]:
    """Read the JSON training format of spaCy 2.

    source (Source): The input.
    YIELDS (Doc): The documents.
    """

    def parse(item: Item) -> list[Doc]:
        # All of a document's paragraphs, in a vocabulary of the converter's own.
        record = require(item.value, dict, "A document")
        require(record.get("paragraphs"), list, "'paragraphs'")
        try:
            return list(json_to_docs([record]))
        except Exception as error:
            # spaCy's converter expects well-formed input and fails in many ways on other.
            raise BadRecord(f"spaCy can't read the document ({error!r}).") from error

    for docs in source.parse(read_json(source.path), parse):
        for doc in docs:
            yield Doc(source.nlp.vocab).from_bytes(doc.to_bytes())
