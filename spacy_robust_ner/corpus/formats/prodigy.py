"""Prodigy's JSONL, where an answer may say much or little about a text.

accept: the spans are entities. Nobody looked for others, so all other tokens are missing, unless
    the option no_missing says that the annotators labeled whole texts: then they are O.
reject: the spans are no entities of their label; they become rejected spans. About the other
    tokens the answer says nothing, so all of them are missing, with no_missing too.
ignore: counted and left out.

All answers on one text are merged. A span that one accepts and another rejects is neither: its
tokens are missing, and the conflict is reported.
"""

import hashlib
from array import array
from collections.abc import Iterator
from typing import Any

import numpy

from ..convert_report import Note
from ..records import BadRecord, CharSpan, TextRecord
from ..source import Source, require
from ..streams import Item, read_json
from .text_json import char_span

_ANSWERS = ("accept", "reject", "ignore")


def read_prodigy(source: Source) -> Iterator[TextRecord]:
    """Read answers and merge those on the same text, which needs a first pass: it keeps eight
    bytes a record, and the second one holds texts with several answers until the last of them.

    source (Source): The input.
    YIELDS (TextRecord): A record a text, where its last answer stands.
    """
    expected = _repeated_texts(source)
    waiting: dict[int, list[TextRecord]] = {}
    for answer in source.parse(read_json(source.path), lambda item: _parse(item, source)):
        key = _text_key(answer.text)
        if key not in expected:
            yield _merge([answer], source)
            continue
        together = waiting.setdefault(key, [])
        together.append(answer)
        if len(together) == expected[key]:
            yield _merge(waiting.pop(key), source)
    # Answers that turned out to be malformed never arrive.
    for together in waiting.values():
        yield _merge(together, source)


def _repeated_texts(source: Source) -> dict[int, int]:
    keys = array("Q")
    for item in read_json(source.path):
        value = item.value
        if (
            isinstance(value, dict)
            and isinstance(value.get("text"), str)
            and value.get("answer") != "ignore"
        ):
            keys.append(_text_key(value["text"]))
    found, counts = numpy.unique(numpy.asarray(keys, dtype="uint64"), return_counts=True)
    repeated = counts > 1
    return dict(zip(found[repeated].tolist(), counts[repeated].tolist(), strict=True))


def _text_key(text: str) -> int:
    digest = hashlib.blake2b(text.encode("utf8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def _parse(item: Item, source: Source) -> TextRecord | None:
    value = require(item.value, dict, "A record")
    answer = value.get("answer", "accept")
    if answer not in _ANSWERS:
        raise BadRecord(f"'answer' must be one of {', '.join(_ANSWERS)}, not {answer!r}.")
    if answer == "ignore":
        source.report.ignored["answer 'ignore'"] += 1
        return None
    text = require(value.get("text"), str, "'text'")
    tokens = require(value.get("tokens") or [], list, "'tokens'")
    spans = [_span(each, tokens) for each in require(value.get("spans") or [], list, "'spans'")]
    words, spaces = _own_tokens(text, tokens)
    accepted = answer == "accept"
    return TextRecord(
        item.line,
        text,
        spans=spans if accepted else [],
        annotated=accepted and source.options.no_missing,
        rejected=[] if accepted else spans,
        words=words,
        spaces=spaces,
    )


def _span(value: Any, tokens: list[Any]) -> CharSpan:
    span = require(value, dict, "A span")
    if tokens and "token_start" in span and "token_end" in span:
        first = require(span["token_start"], int, "'token_start'")
        last = require(span["token_end"], int, "'token_end'")
        if not 0 <= first <= last < len(tokens):
            raise BadRecord(
                f"A span covers the tokens {first} to {last}, but there are {len(tokens)}."
            )
        start = require(tokens[first], dict, "A token").get("start")
        end = require(tokens[last], dict, "A token").get("end")
        return char_span([start, end, span.get("label")])
    return char_span(span)


def _own_tokens(text: str, tokens: list[Any]) -> tuple[list[str] | None, list[bool] | None]:
    """Prodigy's tokens, if they and single spaces make up the text. Otherwise the text is
    tokenized anew, and the spans' character offsets still hold."""
    words: list[str] = []
    spaces: list[bool] = []
    position = 0
    for token in tokens:
        word = require(require(token, dict, "A token").get("text"), str, "A token's text")
        if not word or not text.startswith(word, position):
            return None, None
        position += len(word)
        space = text.startswith(" ", position)
        position += space
        words.append(word)
        spaces.append(space)
    return (words, spaces) if words and position == len(text) else (None, None)


def _merge(answers: list[TextRecord], source: Source) -> TextRecord:
    merged = answers[0]
    if len(answers) > 1:
        source.report.ignored["merged with another answer on its text"] += len(answers) - 1
        merged.annotated = any(each.annotated for each in answers)
        merged.spans = list(dict.fromkeys(span for each in answers for span in each.spans))
        merged.rejected = list(dict.fromkeys(span for each in answers for span in each.rejected))
    for span in set(merged.spans) & set(merged.rejected):
        start, end, label = span
        note = Note(merged.line, "accepted and rejected", merged.text[start:end], label)
        source.report.conflicts.add(note)
        merged.spans.remove(span)
        merged.rejected.remove(span)
        merged.unknown.append((start, end))
    return merged
