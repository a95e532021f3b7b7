"""What the annotation of a training document means.

Tokens have spaCy's own three states: entity, outside ("O") and missing (``token.ent_iob`` 0).
Documents have one flag of ours, ``doc._.annotation_complete``: True if an annotator vouches for
every "O", False if an "O" may hide an overlooked entity, None if nobody said. The flag lives in
``doc.user_data``, which a DocBin keeps when it is written with ``store_user_data=True``.
Spans that a reviewer looked at and rejected are a span group, as in ``incorrect_spans_key``.
"""

from spacy.tokens import Doc

COMPLETE_EXTENSION = "annotation_complete"
REJECTED_SPANS_KEY = "rejected_spans"

_MISSING_IOB = 0

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
