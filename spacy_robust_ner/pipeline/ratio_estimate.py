"""How many entities to expect, estimated from incomplete training data."""

import logging
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from spacy.training import Example

from ..annotation import is_complete, missing_tokens
from ..errors import Warnings
from ..span.ratio import Unit
from ..surface_forms import SurfaceForms

logger = logging.getLogger("spacy")

TermT = TypeVar("TermT")

# With fewer tokens than this, what the complete documents say is mostly chance.
_MIN_COMPLETE_TOKENS = 2000


@dataclass
class _Counts:
    tokens: int = 0
    entities: int = 0

    def add(self, tokens: int, entities: int) -> None:
        self.tokens += tokens
        self.entities += entities

    @property
    def ratio(self) -> float:
        return self.entities / max(1, self.tokens)


@dataclass(frozen=True)
class EstimatedRatio(Generic[TermT]):
    """A ratio term whose ratio is estimated when the component is initialized.

    build (Callable[[float], TermT]): Makes the term, given its ratio.
    unit (str): What the ratio counts: "spans" or "tokens".
    """

    build: Callable[[float], TermT]
    unit: Unit = "tokens"

    def __post_init__(self) -> None:
        # Wrong settings shall show when the config is read, not when the ratio is known.
        self.build(0.0)


def estimate_ratio(
    get_examples: Callable[[], Iterable[Example]],
    *,
    unit: Unit,
    default_complete: bool,
    name: str,
) -> float:
    """Estimate the number of entities (or entity tokens) a token. Complete documents tell it, if
    there are enough of them. Otherwise the labeled entities are counted, and divided by the share
    of entities that seem to be labeled (see SurfaceForms.coverage).

    get_examples (Callable[[], Iterable[Example]]): The training examples; read twice.
    unit (str): "spans" or "tokens".
    default_complete (bool): What a document without the flag counts as.
    name (str): The component's name, for messages.
    RETURNS (float): The ratio.
    """
    all_docs, complete = _Counts(), _Counts()
    forms = SurfaceForms()
    for example in get_examples():
        doc = example.reference
        size = sum(len(ent) if unit == "tokens" else 1 for ent in doc.ents)
        all_docs.add(len(doc), size)
        if is_complete(doc, default=default_complete):
            complete.add(len(doc) - sum(missing_tokens(doc)), size)
        forms.collect(doc)
    if complete.tokens >= _MIN_COMPLETE_TOKENS:
        ratio, source = complete.ratio, f"{complete.tokens} tokens of complete documents"
    else:
        for example in get_examples():
            forms.search(example.reference, in_missing=True)
        coverage = forms.coverage()
        if not coverage:
            warnings.warn(Warnings.W101.format(name=name, ratio=all_docs.ratio), stacklevel=2)
            return all_docs.ratio
        ratio = min(1.0, all_docs.ratio / coverage)
        source = f"an estimated {coverage:.0%} of labels present"
    logger.info("%s expects %.4f entity %s a token, from %s", name, ratio, unit, source)
    return ratio
