"""What the labels of incomplete training data tell: how many entities to expect, which to doubt."""

import logging
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from spacy.training import Example

from ..annotation import is_complete, missing_tokens
from ..errors import Warnings
from ..fragments import FragmentCount
from ..label_study import LabelFindings, LabelStudy
from ..span.ratio import Unit

logger = logging.getLogger("spacy")

TermT = TypeVar("TermT")

# With fewer tokens than this, what the complete documents say is mostly chance.
_MIN_COMPLETE_TOKENS = 2000
# Doubtful strings in the log.
_SHOWN = 20


@dataclass(frozen=True)
class EstimatedRatio(Generic[TermT]):
    """A ratio term whose ratio is estimated when the component is initialized.

    build (Callable[..., TermT]): Makes the term, given its setting `ratio`.
    unit (str): What the ratio counts: "spans" or "tokens".
    """

    build: Callable[..., TermT]
    unit: Unit = "tokens"

    def __post_init__(self) -> None:
        # Wrong settings shall show when the config is read, not when the ratio is known.
        self.build(ratio=0.0)


def with_ratio(term: TermT | EstimatedRatio[TermT] | None, ratio: float) -> TermT | None:
    """term (Optional[Union[TermT, EstimatedRatio]]): A ratio term, whose ratio may be an estimate.
    ratio (float): The estimate.
    RETURNS (Optional[TermT]): The term with its ratio.
    """
    return term.build(ratio=ratio) if isinstance(term, EstimatedRatio) else term


@dataclass(frozen=True)
class AnnotationCounts:
    """What two passes over the training examples tell.

    tokens (int): All tokens.
    known_tokens (int): Annotated tokens of complete documents.
    known_entities (Dict[str, int]): Entities ("spans") of complete documents, and their "tokens".
    findings (LabelFindings): What the labeled strings tell.
    fragments (FragmentCount): Labels of incomplete documents that seem to be parts of longer names.
    """

    tokens: int
    known_tokens: int
    known_entities: dict[Unit, int]
    findings: LabelFindings
    fragments: FragmentCount


def count_annotation(
    get_examples: Callable[[], Iterable[Example]],
    *,
    default_complete: bool,
    with_doubts: bool,
) -> AnnotationCounts:
    """get_examples (Callable[[], Iterable[Example]]): The training examples; read twice.
    default_complete (bool): What a document without the flag counts as.
    with_doubts (bool): Whether to look for doubtful labels.
    RETURNS (AnnotationCounts): The counts.
    """
    tokens, known_tokens = 0, 0
    known_entities: dict[Unit, int] = {"spans": 0, "tokens": 0}
    study, fragments = LabelStudy(), FragmentCount()
    for example in get_examples():
        doc = example.reference
        tokens += len(doc)
        if is_complete(doc, default=default_complete):
            known_tokens += len(doc) - sum(missing_tokens(doc))
            known_entities["spans"] += len(doc.ents)
            known_entities["tokens"] += sum(len(ent) for ent in doc.ents)
        else:
            fragments.add(doc)
        study.collect(doc)
    for example in get_examples():
        study.search(example.reference)
    findings = study.findings(with_doubts=with_doubts)
    return AnnotationCounts(tokens, known_tokens, known_entities, findings, fragments)


def estimate_ratio(counts: AnnotationCounts, *, unit: Unit, name: str) -> float:
    """Estimate the number of entities (or entity tokens) a token. Complete documents tell it, if
    there are enough of them. Otherwise the labeled entities are counted, and divided by the share
    of entities that seem to be labeled (see SurfaceForms.coverage).

    counts (AnnotationCounts): From `count_annotation`.
    unit (str): "spans" or "tokens".
    name (str): The component's name, for messages.
    RETURNS (float): The ratio.
    """
    findings = counts.findings
    if counts.known_tokens >= _MIN_COMPLETE_TOKENS:
        ratio = counts.known_entities[unit] / counts.known_tokens
        source = f"{counts.known_tokens} tokens of complete documents"
    else:
        labeled = findings.entities if unit == "spans" else findings.entity_tokens
        labeled_ratio = labeled / max(1, counts.tokens)
        if not findings.coverage:
            warnings.warn(Warnings.W101.format(name=name, ratio=labeled_ratio), stacklevel=2)
            return labeled_ratio
        ratio = min(1.0, labeled_ratio / findings.coverage)
        source = f"an estimated {findings.coverage:.0%} of labels present"
    logger.info("%s expects %.4f entity %s a token, from %s", name, ratio, unit, source)
    return ratio


def report_doubtful(findings: LabelFindings, *, name: str) -> None:
    """Tell which labels count as missing because their strings are rather ordinary words."""
    if not findings.doubtful:
        return
    forms = sorted(findings.doubtful.values(), key=lambda form: -form.labeled)
    shown = ", ".join(f"{form.text!r} ({form.labeled})" for form in forms[:_SHOWN])
    logger.info(
        "%s takes %d labels of %d strings for missing, as these strings are mostly unlabeled: %s%s",
        name,
        sum(form.labeled for form in forms),
        len(forms),
        shown,
        "" if len(forms) <= _SHOWN else ", …",
    )


def judge_fragments(counts: AnnotationCounts, *, name: str) -> bool:
    """Decide whether labels count as missing that seem to be parts of longer names, and tell which.

    counts (AnnotationCounts): From `count_annotation`.
    name (str): The component's name, for messages.
    RETURNS (bool): False where capital letters do not mark names.
    """
    fragments = counts.fragments
    if not fragments.labels:
        return True
    if not counts.findings.capitals_mark_names:
        warnings.warn(Warnings.W104.format(name=name, count=fragments.labels), stacklevel=2)
        return False
    logger.info(
        "%s takes %d labels for missing that seem to be parts of longer names: %s%s",
        name,
        fragments.labels,
        ", ".join(fragments.examples),
        "" if fragments.labels == len(fragments.examples) else ", …",
    )
    return True


def report_outside(findings: LabelFindings, *, name: str) -> None:
    """Tell for how many tokens the writing says that they are in no entity."""
    tokens = sum(findings.outside_places.values())
    share = tokens / max(1, findings.tokens)
    logger.info(
        "%s takes unlabeled tokens for O where labels hardly ever are: %.0f%% of all tokens, in "
        "the places %s",
        name,
        100 * share,
        ", ".join(findings.outside_places) or "(none)",
    )
