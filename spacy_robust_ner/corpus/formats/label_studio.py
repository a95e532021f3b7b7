"""Label Studio's exports, JSON and JSON-MIN."""

from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

from ...errors import Errors
from ..convert_report import Note
from ..records import BadRecord, CharSpan, TextRecord
from ..source import Source, require
from ..streams import Item, read_json

_LABEL_TYPES = ("labels", "hypertextlabels")
_HYPERTEXT = "hypertextlabels"
# Fields of the short form that the tool adds to the task's own.
_MIN_OWN_FIELDS = {
    "id",
    "annotator",
    "annotation_id",
    "created_at",
    "updated_at",
    "lead_time",
}


def is_short_form(record: dict[str, Any]) -> bool:
    """RETURNS (bool): Whether a record is of the JSON-MIN export."""
    regions = (region for value in record.values() for region in _regions_in(value))
    return "annotation_id" in record or any(True for _ in regions)


def read_label_studio(source: Source) -> Iterator[TextRecord]:
    """Read tasks with their annotations. Cancelled annotations and tasks without any are counted
    and left out. Of several annotations of a task, the one marked as ground truth is taken, or
    else the first; the others are counted.

    source (Source): The input.
    YIELDS (TextRecord): A record a task.
    """

    def parse(item: Item) -> TextRecord | None:
        record = require(item.value, dict, "A task")
        if "data" in record:
            return _parse_task(item, record, source)
        regions = [region for value in record.values() for region in _regions_in(value)]
        fields = {name: value for name, value in record.items() if name not in _MIN_OWN_FIELDS}
        return _record(item, fields, regions, source)

    yield from source.parse(read_json(source.path), parse)


def _parse_task(item: Item, task: dict[str, Any], source: Source) -> TextRecord | None:
    annotations = task.get("annotations", task.get("completions", []))
    usable = []
    for annotation in require(annotations, list, "'annotations'"):
        if require(annotation, dict, "An annotation").get("was_cancelled"):
            source.report.ignored["cancelled annotation"] += 1
        else:
            usable.append(annotation)
    if not usable:
        source.report.ignored["task without an annotation"] += 1
        return None
    usable.sort(key=lambda each: not each.get("ground_truth"))
    if len(usable) > 1:
        source.report.ignored["another annotation of its task"] += len(usable) - 1
    regions = []
    for result in require(usable[0].get("result"), list, "'result'"):
        kind = require(result, dict, "A result").get("type")
        if kind in _LABEL_TYPES:
            regions.append(require(result.get("value"), dict, "A result's value"))
    return _record(item, require(task["data"], dict, "'data'"), regions, source)


def _regions_in(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, list):
        for each in value:
            if isinstance(each, dict) and any(isinstance(each.get(k), list) for k in _LABEL_TYPES):
                yield each


def _record(
    item: Item, fields: dict[str, Any], regions: list[dict[str, Any]], source: Source
) -> TextRecord:
    text = _text(fields, source.options.text_key)
    if any(_HYPERTEXT in region for region in regions):
        text = _html_text(text)
    record = TextRecord(item.line, text, [])
    for region in regions:
        marked = region.get("text")
        for start, end, label in _spans(region):
            if isinstance(marked, str) and marked and text[start:end] != marked:
                start, end = _from_utf16(text, start, end)
            if isinstance(marked, str) and marked and text[start:end] != marked:
                if source.options.misaligned == "error":
                    raise ValueError(
                        Errors.R015.format(
                            path=source.path, line=item.line, text=marked, label=label
                        )
                    )
                reason = f"its offsets are those of {text[start:end]!r}; no token is O for certain"
                source.report.misaligned.add(Note(item.line, reason, marked, label))
                # Nobody knows where the entity is.
                record.annotated = False
            else:
                record.spans.append((start, end, label))
    return record


def _from_utf16(text: str, start: int, end: int) -> tuple[int, int]:
    """A browser counts characters beyond the first 65,536, such as emoji, as two."""
    units = text.encode("utf-16-le", "surrogatepass")
    before = units[: 2 * max(start, 0)].decode("utf-16-le", "ignore")
    until = units[: 2 * max(end, 0)].decode("utf-16-le", "ignore")
    return len(before), len(until)


def _text(fields: dict[str, Any], text_key: str | None) -> str:
    if text_key is not None:
        return str(require(fields.get(text_key), str, f"'{text_key}'"))
    if isinstance(fields.get("text"), str):
        return str(fields["text"])
    texts = [value for value in fields.values() if isinstance(value, str)]
    if len(texts) != 1:
        names = ", ".join(fields) or "none"
        raise BadRecord(f"Which field is the text? Say so with --text-key. Fields: {names}.")
    return texts[0]


def _spans(region: dict[str, Any]) -> list[CharSpan]:
    offsets = region.get("globalOffsets", region)
    start = require(require(offsets, dict, "'globalOffsets'").get("start"), int, "'start'")
    end = require(offsets.get("end"), int, "'end'")
    named = next((region[name] for name in _LABEL_TYPES if name in region), None)
    labels: list[Any] = require(named, list, "'labels'")
    if not labels:
        raise BadRecord(f"The region from {start} to {end} has no label.")
    return [(start, end, require(label, str, "A label")) for label in labels]


class _TextOfHTML(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []

    def handle_data(self, data: str) -> None:
        self.parts.append(data)


def _html_text(html: str) -> str:
    parser = _TextOfHTML()
    parser.feed(html)
    parser.close()
    return "".join(parser.parts)
