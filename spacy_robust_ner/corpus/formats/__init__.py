"""The formats that can be converted, and how to tell them apart."""

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from spacy.tokens import Doc

from ...errors import Errors
from ..io import SUFFIX
from ..records import Record
from ..source import Source
from ..streams import json_layout, read_json
from .columns import looks_like_columns, read_columns
from .label_studio import is_short_form, read_label_studio
from .prodigy import read_prodigy
from .spacy_docs import read_docbin, read_legacy_json
from .text_json import read_doccano, read_offsets, read_plain_text
from .token_json import read_tag_ids, read_token_entities, read_token_tags, read_tuples

_LOOKED_AT = 100


class CorpusFormat(NamedTuple):
    """description (str): What it is, for the help.
    read (Callable[[Source], Iterator[Union[Record, Doc]]]): Its reader.
    """

    description: str
    read: Callable[[Source], Iterator[Record | Doc]]


FORMATS: dict[str, CorpusFormat] = {
    "conll": CorpusFormat("columns, a token a line", read_columns),
    "tuples": CorpusFormat('JSON of "sentence" and "labeled entities" in strings', read_tuples),
    "tokens": CorpusFormat('JSON of "tokens" and "entities", ends inclusive', read_token_entities),
    "tag-ids": CorpusFormat('JSON of "str_words" and "tags"', read_tag_ids),
    "token-tags": CorpusFormat('JSON of "tokens" and "ner_tags"', read_token_tags),
    "docbin": CorpusFormat("spaCy's .spacy, a file or a directory", read_docbin),
    "offsets": CorpusFormat('spaCy\'s JSONL of "text" and "entities"', read_offsets),
    "spacy-json": CorpusFormat("the JSON of spaCy 2", read_legacy_json),
    "prodigy": CorpusFormat("Prodigy's JSONL", read_prodigy),
    "doccano": CorpusFormat("doccano's JSONL", read_doccano),
    "label-studio": CorpusFormat("Label Studio's JSON or JSON-MIN", read_label_studio),
    "text": CorpusFormat("raw text, a document a line; never found automatically", read_plain_text),
}


def get_format(name: str) -> CorpusFormat:
    """RETURNS (CorpusFormat): The format of a name; an unknown name is an error."""
    if name not in FORMATS:
        raise ValueError(Errors.R011.format(format=name, known=", ".join(FORMATS)))
    return FORMATS[name]


def find_format(path: Path) -> str:
    """Tell the format of an input from its content.

    path (Path): The input.
    RETURNS (str): A name in FORMATS; an input that is none of them is an error.
    """
    if path.is_dir() or path.suffix == SUFFIX:
        return "docbin"
    if looks_like_columns(path):
        return "conll"
    if not json_layout(path):
        reason = "it is neither JSON nor columns with tags in the last one"
        raise ValueError(Errors.R010.format(path=path, reason=reason, known=", ".join(FORMATS)))
    candidates = ""
    for item in islice(read_json(path), _LOOKED_AT):
        name, certain = _format_of(item.value)
        if certain:
            return name
        candidates = candidates or name
    if not candidates:
        reason = "the fields of its first records belong to no known format"
        raise ValueError(Errors.R010.format(path=path, reason=reason, known=", ".join(FORMATS)))
    return candidates


def _format_of(record: Any) -> tuple[str, bool]:
    """The format of a record, and whether another record could still tell otherwise."""
    if isinstance(record, list):
        return ("offsets", True) if _is_pair(record) else ("", False)
    if not isinstance(record, dict):
        return "", False
    tokens = record.get("tokens")
    if "sentence" in record and "labeled entities" in record:
        return "tuples", True
    if "str_words" in record:
        return "tag-ids", True
    if "paragraphs" in record:
        return "spacy-json", True
    if "text" in record and ("answer" in record or "spans" in record or "_input_hash" in record):
        return "prodigy", True
    if isinstance(tokens, list):
        if any(
            isinstance(record.get(name), list) for name in ("ner_tags", "tags", "labels", "ner")
        ):
            return "token-tags", True
        return ("tokens", True) if "entities" in record else ("", False)
    if isinstance(record.get("data"), dict) or is_short_form(record):
        return "label-studio", True
    if "data" in record or "label" in record or "labels" in record or "annotations" in record:
        return "doccano", "data" in record or bool(record.get("label") or record.get("labels"))
    if "text" in record:
        entities = record.get("entities")
        if isinstance(entities, list) and entities:
            first = entities[0]
            is_doccano = isinstance(first, dict) and "start_offset" in first
            return ("doccano" if is_doccano else "offsets"), True
        return "offsets", False
    return "", False


def _is_pair(record: list[Any]) -> bool:
    return len(record) == 2 and isinstance(record[0], str) and isinstance(record[1], dict)
