"""JSON records with tokens: entities as tuples in a string, as lists, or as a tag a token."""

import ast
from collections.abc import Callable, Iterator
from typing import Any

from ...tags import SchemeDetector, TokenSpan, decode_tags
from ..convert_report import Note
from ..records import BadRecord, TokenRecord
from ..source import Source, require
from ..streams import Item, read_json
from .tag_names import find_tag_map

# What Hugging Face's trainers leave out of the loss.
_IGNORED_ID = -100

_TAG_FIELDS = ("ner_tags", "tags", "labels", "ner")

TagReader = Callable[[Any], list[str | None]]


def read_tuples(source: Source) -> Iterator[TokenRecord]:
    """Read records whose "sentence" and "labeled entities" are Python literals in strings.

    source (Source): The input.
    YIELDS (TokenRecord): The records.
    """

    def parse(item: Item) -> TokenRecord:
        record = require(item.value, dict, "A record")
        words = _literal(record.get("sentence"), "'sentence'")
        spans = _literal(record.get("labeled entities"), "'labeled entities'")
        return TokenRecord(item.line, _words(words, "'sentence'"), _inclusive_spans(spans))

    yield from source.parse(read_json(source.path), parse)


def read_token_entities(source: Source) -> Iterator[TokenRecord]:
    """Read records of "tokens" and "entities", the latter with inclusive ends.

    source (Source): The input.
    YIELDS (TokenRecord): The records.
    """

    def parse(item: Item) -> TokenRecord:
        record = require(item.value, dict, "A record")
        words = _words(record.get("tokens"), "'tokens'")
        return TokenRecord(item.line, words, _inclusive_spans(record.get("entities")))

    yield from source.parse(read_json(source.path), parse)


def read_tag_ids(source: Source) -> Iterator[TokenRecord]:
    """Read records of "str_words" and "tags", as BOND's code has them.

    source (Source): The input.
    YIELDS (TokenRecord): The records.
    """
    yield from _read_tagged(source, "str_words", ("tags",))


def read_token_tags(source: Source) -> Iterator[TokenRecord]:
    """Read records of "tokens" and "ner_tags", as Hugging Face's datasets have them.

    source (Source): The input.
    YIELDS (TokenRecord): The records.
    """
    yield from _read_tagged(source, "tokens", _TAG_FIELDS)


def _read_tagged(
    source: Source, word_field: str, tag_fields: tuple[str, ...]
) -> Iterator[TokenRecord]:
    read_tags = _tag_reader(source)

    def tags_of(item: Item) -> list[str | None]:
        record = require(item.value, dict, "A record")
        for name in tag_fields:
            if name in record:
                return read_tags(require(record[name], list, f"'{name}'"))
        raise BadRecord(f"There is no field '{tag_fields[0]}'.")

    scheme = source.options.scheme
    if scheme == "auto":
        scheme = _find_scheme(source, tags_of)
    source.report.scheme = scheme

    def parse(item: Item) -> TokenRecord:
        tags = tags_of(item)
        words = _words(item.value.get(word_field), f"'{word_field}'")
        if len(words) != len(tags):
            raise BadRecord(f"There are {len(words)} tokens, but {len(tags)} tags.")
        try:
            spans, irregular = decode_tags(tags, scheme)
        except ValueError as error:
            raise BadRecord(str(error)) from error
        for i in irregular:
            note = Note(item.line, f"{tags[i]} is out of order", words[i])
            source.report.irregular_tags.add(note)
        missing = [i for i, tag in enumerate(tags) if tag is None]
        return TokenRecord(item.line, words, spans, missing)

    yield from source.parse(read_json(source.path), parse)


def _find_scheme(source: Source, tags_of: Callable[[Item], list[str | None]]) -> str:
    detector = SchemeDetector()
    for item in read_json(source.path):
        # What can't be used is for the second pass to report.
        if not item.problem:
            try:
                detector.update(tags_of(item))
            except BadRecord:
                continue
    source.report.found.append("scheme")
    try:
        return detector.result()
    except ValueError as error:
        raise ValueError(f"{error} (in {source.path})") from error


def _tag_reader(source: Source) -> TagReader:
    names: dict[int, str] = {}
    missing = source.options.missing_tags

    def read(values: list[Any]) -> list[str | None]:
        tags: list[str | None] = []
        for value in values:
            if value == _IGNORED_ID or value is None:
                tags.append(None)
                continue
            if isinstance(value, int) and not isinstance(value, bool):
                # Read when it is first needed, since tags may also be strings.
                if not names:
                    names.update(find_tag_map(source.path, source.options.tag_map))
                if value not in names:
                    raise BadRecord(f"The tag number {value} is not in the tag map.")
                value = names[value]
            tag = require(value, str, "A tag")
            tags.append(None if tag in missing else tag)
        return tags

    return read


def _literal(value: Any, what: str) -> Any:
    if isinstance(value, list):
        return value
    text = require(value, str, what)
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError) as error:
        raise BadRecord(f"{what} is not a Python literal ({error}).") from error


def _words(value: Any, what: str) -> list[str]:
    words: list[str] = require(value, list, what)
    for word in words:
        require(word, str, f"A token in {what}")
    return words


def _inclusive_spans(value: Any) -> list[TokenSpan]:
    spans: list[TokenSpan] = []
    for entity in require(value, list, "The entities"):
        if not isinstance(entity, (list, tuple)) or len(entity) != 3:
            raise BadRecord(f"An entity must be (first, last, label), not {entity!r}.")
        first, last, label = entity
        require(first, int, "The first token of an entity")
        require(last, int, "The last token of an entity")
        if not require(label, str, "The label of an entity"):
            raise BadRecord(f"The entity {entity!r} has no label.")
        spans.append((first, last + 1, label))
    return spans
