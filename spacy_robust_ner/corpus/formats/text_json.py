"""JSON records with running text and character offsets: spaCy's training JSONL and doccano."""

from collections.abc import Iterator
from typing import Any

from ..records import BadRecord, CharSpan, TextRecord
from ..source import Source, require
from ..streams import Item, read_json, read_lines

_START_FIELDS = ("start", "start_offset")
_END_FIELDS = ("end", "end_offset")
_DOCCANO_TEXT = ("text", "data")
_DOCCANO_SPANS = ("label", "labels", "entities", "annotations")


def read_offsets(source: Source) -> Iterator[TextRecord]:
    """Read {"text": …, "entities": [[start, end, label]]} and [text, {"entities": …}]. A record
    without the field "entities" was not annotated: its tokens are missing.

    source (Source): The input.
    YIELDS (TextRecord): The records.
    """

    def parse(item: Item) -> TextRecord:
        text, annotations = _text_and_annotations(item.value)
        entities = annotations.get("entities")
        spans = [] if entities is None else char_spans(entities)
        return TextRecord(item.line, text, spans, annotated=entities is not None)

    yield from source.parse(read_json(source.path), parse)


def read_doccano(source: Source) -> Iterator[TextRecord]:
    """Read doccano's exports for sequence labeling, in their old and new fields.

    source (Source): The input.
    YIELDS (TextRecord): The records.
    """

    def parse(item: Item) -> TextRecord:
        record = require(item.value, dict, "A record")
        text = next((record[name] for name in _DOCCANO_TEXT if name in record), None)
        spans = next((record[name] for name in _DOCCANO_SPANS if name in record), None)
        return TextRecord(item.line, require(text, str, "'text'"), char_spans(spans))

    yield from source.parse(read_json(source.path), parse)


def read_plain_text(source: Source) -> Iterator[TextRecord]:
    """Read raw text, a document a line, whose tokens are all missing.

    source (Source): The input.
    YIELDS (TextRecord): The lines that aren't empty.
    """

    def parse(item: Item) -> TextRecord | None:
        if not item.value.strip():
            return None
        return TextRecord(item.line, item.value.strip(), [], annotated=False)

    yield from source.parse(read_lines(source.path), parse)


def char_spans(value: Any) -> list[CharSpan]:
    """Read spans that are lists of start, end and label, or objects with such fields.

    value (Any): A list of them.
    RETURNS (List[CharSpan]): The spans, end exclusive.
    """
    return [char_span(each) for each in require(value, list, "The entities")]


def char_span(value: Any) -> CharSpan:
    """RETURNS (CharSpan): One span; see char_spans."""
    if isinstance(value, dict):
        start = next((value[name] for name in _START_FIELDS if name in value), None)
        end = next((value[name] for name in _END_FIELDS if name in value), None)
        label = value.get("label")
    elif isinstance(value, (list, tuple)) and len(value) >= 3:
        start, end, label = value[:3]
    else:
        raise BadRecord(f"An entity must be (start, end, label), not {value!r}.")
    name: str = require(label, str, "The label of an entity")
    if not name:
        raise BadRecord(f"The entity {value!r} has no label.")
    return (
        require(start, int, "The start of an entity"),
        require(end, int, "The end of an entity"),
        name,
    )


def _text_and_annotations(value: Any) -> tuple[str, dict[str, Any]]:
    if isinstance(value, list):
        if len(value) != 2:
            raise BadRecord(f"A record must be [text, annotations], not a list of {len(value)}.")
        text, annotations = value
    else:
        record = require(value, dict, "A record")
        text, annotations = record.get("text"), record
    return require(text, str, "'text'"), require(annotations, dict, "The annotations")
