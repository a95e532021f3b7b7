"""Evaluation of predicted entities, right about missing annotation."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from spacy.scorer import PRFScore, get_ner_prf
from spacy.training import Example

from .targets import TargetReader


def make_entity_scorer_v1(spans_key: str | None = None) -> Callable[..., dict[str, Any]]:
    """Build the scorer of both components: ``ents_p/r/f/per_type`` and, with a span group,
    ``spans_<key>_p/r/f/per_type``.

    spans_key (Optional[str]): The span group of the predictions. Its gold is the group of the
        same name or, if there is none, the entities.
    RETURNS (Callable): The scorer.
    """
    return partial(score_entities, spans_key=spans_key)


def score_entities(
    examples: Iterable[Example], *, spans_key: str | None = None, **_: Any
) -> dict[str, Any]:
    """Score a batch of examples; see make_entity_scorer_v1.

    RETURNS (Dict[str, Any]): The figures. They are None where there is no gold.
    """
    examples = list(examples)
    scores: dict[str, Any] = get_ner_prf(examples)
    if spans_key is not None:
        scores.update(_score_span_group(examples, spans_key))
    return scores


def _score_span_group(examples: list[Example], key: str) -> dict[str, Any]:
    overall, per_type, has_gold = PRFScore(), dict[str, PRFScore](), False
    for example in examples:
        gold = _gold_spans(example, key)
        if gold is None:
            continue
        has_gold = True
        predicted = _known_predictions(example, key)
        overall.score_set(predicted, gold)
        for label in {span[2] for span in gold | predicted}:
            per_type.setdefault(label, PRFScore()).score_set(
                {span for span in predicted if span[2] == label},
                {span for span in gold if span[2] == label},
            )
    prefix = f"spans_{key}"
    if not has_gold:
        return {f"{prefix}_{figure}": None for figure in ("p", "r", "f", "per_type")}
    return {
        f"{prefix}_p": overall.precision,
        f"{prefix}_r": overall.recall,
        f"{prefix}_f": overall.fscore,
        f"{prefix}_per_type": {label: prf.to_dict() for label, prf in per_type.items()},
    }


def _known_predictions(example: Example, key: str) -> set[tuple[int, int, str]]:
    """RETURNS (Set[Tuple[int, int, str]]): Predicted spans, without those that touch a token whose
    annotation is missing. A gold span group has no missing tokens.
    """
    spans = example.predicted.spans.get(key, ())
    if key in example.reference.spans:
        return {(span.start, span.end, span.label_) for span in spans}
    missing = TargetReader()(example).missing
    return {
        (span.start, span.end, span.label_)
        for span in spans
        if not missing[span.start : span.end].any()
    }


def _gold_spans(example: Example, key: str) -> set[tuple[int, int, str]] | None:
    reference = example.reference
    if key in reference.spans:
        spans = example.get_aligned_spans_y2x(reference.spans[key], allow_overlap=True)
    elif reference.has_annotation("ENT_IOB"):
        spans = example.get_aligned_spans_y2x(reference.ents)
    else:
        return None
    return {(span.start, span.end, span.label_) for span in spans}
