"""What the annotation of a training document means.

Tokens have spaCy's own three states: entity, outside ("O") and missing (``token.ent_iob`` 0).
Documents have one flag of ours, ``doc._.annotation_complete``: True if an annotator vouches for
every "O", False if an "O" may hide an overlooked entity, None if nobody said. The flag lives in
``doc.user_data``, which a DocBin keeps when it is written with ``store_user_data=True``.
Spans that a reviewer looked at and rejected are a span group, as in ``incorrect_spans_key``.
"""

import functools
from collections.abc import Iterator
from typing import Any

import srsly
from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab

COMPLETE_EXTENSION = "annotation_complete"
REJECTED_SPANS_KEY = "rejected_spans"
PHRASES_KEY = "phrases"

_MISSING_IOB = 0
# Where a Doc keeps the flag in its user data.
_FLAG = ("._.", COMPLETE_EXTENSION, None, None)

if not Doc.has_extension(COMPLETE_EXTENSION):
    Doc.set_extension(COMPLETE_EXTENSION, default=None)


def set_complete(doc: Doc, complete: bool | None) -> None:
    """Say whether every entity of a document is annotated.

    doc (Doc): The document.
    complete (Optional[bool]): The flag; None takes an earlier statement back.
    """
    doc._.set(COMPLETE_EXTENSION, complete)


def stated_complete(doc: Doc) -> bool | None:
    """RETURNS (Optional[bool]): The document's flag, or None if nobody set it."""
    value: bool | None = doc._.get(COMPLETE_EXTENSION)
    return value


def is_complete(doc: Doc, *, default: bool = False) -> bool:
    """Whether every "O" of a document can be trusted.

    doc (Doc): The document.
    default (bool): What a document without the flag counts as.
    RETURNS (bool): True for complete, False for incomplete annotation.
    """
    stated = stated_complete(doc)
    return default if stated is None else stated


def missing_tokens(doc: Doc) -> list[bool]:
    """RETURNS (List[bool]): For each token, whether its entity annotation is missing."""
    states: list[bool] = (doc.to_array("ENT_IOB") == _MISSING_IOB).tolist()
    return states


def docs_in(docbin: DocBin, vocab: Vocab) -> Iterator[Doc]:
    """Recover documents as DocBin.get_docs does, many times as fast if they have user data.

    docbin (DocBin): The packed documents; it gives its user data away.
    vocab (Vocab): The vocabulary of the documents.
    YIELDS (Doc): The documents, with their flags.
    """
    packed, docbin.user_data = docbin.user_data, []
    for i, doc in enumerate(docbin.get_docs(vocab)):
        if i < len(packed):
            doc.user_data.update(_unpack(packed[i]))
        yield doc


def pack_user_data(doc: Doc) -> bytes:
    """RETURNS (bytes): The document's user data as a DocBin stores it."""
    if len(doc.user_data) <= 1:
        for packed, data in _packed_flags().items():
            # Equality isn't enough: 1 equals True.
            if data == doc.user_data and all(doc.user_data[key] is data[key] for key in data):
                return packed
    return bytes(srsly.msgpack_dumps(doc.user_data))


@functools.cache
def _packed_flags() -> dict[bytes, dict[Any, Any]]:
    """msgpack looks through all installed packages each time that it packs or unpacks, which takes
    longer than everything else about a document. Most documents have no user data but the flag."""
    common: list[dict[Any, Any]] = [{}, *({_FLAG: flag} for flag in (True, False, None))]
    return {srsly.msgpack_dumps(data): data for data in common}


def _unpack(packed: bytes | None) -> dict[Any, Any]:
    if packed is None:
        return {}
    common = _packed_flags().get(packed)
    return srsly.msgpack_loads(packed, use_list=False) if common is None else common
