"""From a format's record to a Doc, with everything that had to be decided on the way reported."""

from collections.abc import Iterable

from spacy.tokens import Doc, Span
from spacy.util import filter_spans

from ..annotation import REJECTED_SPANS_KEY
from ..errors import Errors
from .convert_report import Note
from .records import BadRecord, CharSpan, Record, TextRecord, TokenRecord
from .source import Source

# Holds every entity of a document whose entities overlap; doc.ents can only hold some of them.
ALL_ENTITIES_KEY = "all_entities"

_BLANK = " "


def build_doc(record: Record, source: Source) -> Doc | None:
    """Make a Doc of a record.

    record (Record): The record.
    source (Source): Where it comes from; its report takes note of what happens.
    RETURNS (Optional[Doc]): The document, or None for a record without tokens.
    """
    if isinstance(record, TokenRecord):
        return _from_tokens(record, source)
    return _from_text(record, source)


def _from_tokens(record: TokenRecord, source: Source) -> Doc | None:
    if not record.words:
        source.report.ignored["no tokens"] += 1
        return None
    length = len(record.words)
    for start, end, label in record.spans:
        if not 0 <= start < end <= length:
            raise BadRecord(
                f"The entity {label} covers the tokens {start} to {end - 1}, but there are "
                f"{length}."
            )
    # Without spaces given, the Doc doesn't claim to know the text, and training keeps these tokens.
    doc = Doc(source.nlp.vocab, words=_visible(record.words, source))
    if record.sentence_starts is not None:
        starts = set(record.sentence_starts)
        for token in doc:
            token.is_sent_start = token.i in starts
    spans = [Span(doc, start, end, label) for start, end, label in record.spans]
    _set_entities(doc, spans, record, source, missing=set(record.missing), default="outside")
    return doc


def _visible(words: list[str], source: Source) -> list[str]:
    """A Doc can't hold an empty token. A space takes its place, so that all tokens after it keep
    their positions."""
    blank = [i for i, word in enumerate(words) if not word or word.isspace()]
    if not blank:
        return words
    source.report.blank_tokens += len(blank)
    return [word or _BLANK for word in words]


def _from_text(record: TextRecord, source: Source) -> Doc | None:
    for start, end, label in (*record.spans, *record.rejected):
        if not 0 <= start < end <= len(record.text):
            raise BadRecord(
                f"The span {label} covers the characters {start} to {end}, but the text has "
                f"{len(record.text)}."
            )
    if record.words is not None:
        doc = Doc(source.nlp.vocab, words=record.words, spaces=record.spaces)
    else:
        doc = source.nlp.make_doc(record.text)
    if not len(doc):
        source.report.ignored["no tokens"] += 1
        return None
    missing: set[int] = set()
    for start, end in record.unknown:
        stretch = doc.char_span(start, end, alignment_mode="expand")
        missing.update(range(stretch.start, stretch.end) if stretch is not None else ())
    spans = _align(doc, record.spans, record, source, missing)
    default = "outside" if record.annotated else "missing"
    _set_entities(doc, spans, record, source, missing=missing, default=default)
    # A rejected span that isn't made of tokens can't be predicted, so nothing is lost with it.
    rejected = _align(doc, record.rejected, record, source, set())
    if rejected:
        doc.spans[REJECTED_SPANS_KEY] = rejected
    return doc


def _align(
    doc: Doc, offsets: Iterable[CharSpan], record: TextRecord, source: Source, missing: set[int]
) -> list[Span]:
    spans = []
    mode = source.options.misaligned
    for start, end, label in offsets:
        span = doc.char_span(start, end, label=label)
        if span is not None:
            spans.append(span)
            continue
        text = record.text[start:end]
        if mode == "error":
            raise ValueError(
                Errors.R015.format(path=source.path, line=record.line, text=text, label=label)
            )
        outcome = "its tokens became missing"
        touched = doc.char_span(start, end, alignment_mode="expand")
        if mode != "missing":
            span = doc.char_span(start, end, label=label, alignment_mode=mode)
            if span is not None:
                spans.append(span)
                outcome = f"taken as {span.text!r}"
        if span is None and touched is not None:
            missing.update(range(touched.start, touched.end))
        source.report.misaligned.add(Note(record.line, outcome, text, label))
    return spans


def _set_entities(
    doc: Doc, spans: list[Span], record: Record, source: Source, *, missing: set[int], default: str
) -> None:
    kept = filter_spans(spans) if len(spans) > 1 else spans
    if len(kept) < len(spans):
        doc.spans[ALL_ENTITIES_KEY] = spans
        chosen = {(span.start, span.end, span.label) for span in kept}
        for span in spans:
            key = (span.start, span.end, span.label)
            if key in chosen:
                chosen.discard(key)
                continue
            source.report.overlapping.add(
                Note(record.line, "a longer or earlier entity overlaps it", span.text, span.label_)
            )
            # What sticks out of the entity that is kept is no O either.
            missing.update(range(span.start, span.end))
    in_entities = {i for span in kept for i in range(span.start, span.end)}
    unknown = [doc[i : i + 1] for i in sorted(missing - in_entities)]
    if default == "missing":
        doc.set_ents(kept, default="missing")
    else:
        doc.set_ents(kept, missing=unknown)
