"""Exact-span precision, recall and F1 of any pipeline that predicts entities."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from spacy.language import Language
from spacy.scorer import PRFScore
from spacy.tokens import Doc, Span

from ..annotation import missing_tokens

Entity = tuple[int, int, str]


@dataclass
class Evaluation:
    """How well a pipeline found the entities of a gold corpus.

    overall (PRFScore): Over all labels.
    per_label (Dict[str, PRFScore]): For each label that is in the gold or predicted.
    documents (int): Documents evaluated.
    tokens (int): Tokens evaluated.
    seconds (float): Time that the pipeline took for them.
    """

    overall: PRFScore = field(default_factory=PRFScore)
    per_label: dict[str, PRFScore] = field(default_factory=dict)
    documents: int = 0
    tokens: int = 0
    seconds: float = 0.0

    def add(self, gold: set[Entity], predicted: set[Entity]) -> None:
        """Count one document's entities.

        gold (Set[Entity]): The true entities.
        predicted (Set[Entity]): The predicted ones.
        """
        self.overall.score_set(predicted, gold)
        for label in {entity[2] for entity in gold | predicted}:
            self.per_label.setdefault(label, PRFScore()).score_set(
                {entity for entity in predicted if entity[2] == label},
                {entity for entity in gold if entity[2] == label},
            )

    def as_dict(self) -> dict[str, Any]:
        """RETURNS (Dict[str, Any]): The figures, for JSON."""
        return {
            **_figures(self.overall),
            "per_label": {label: _figures(prf) for label, prf in sorted(self.per_label.items())},
            "documents": self.documents,
            "tokens": self.tokens,
            "tokens_per_second": self.tokens / self.seconds if self.seconds else None,
        }


def evaluate_pipeline(
    nlp: Language,
    gold_docs: Iterable[Doc],
    *,
    spans_key: str | None = None,
    batch_size: int | None = None,
    observe: Callable[[Doc, Doc], None] | None = None,
) -> Evaluation:
    """Run a pipeline over a gold corpus and compare entities as (start, end, label).

    Documents keep the gold tokens. A prediction that touches a token with missing annotation is
    neither right nor wrong, and is left out, as spaCy's own scorer does.

    nlp (Language): The pipeline.
    gold_docs (Iterable[Doc]): Documents with true entities.
    spans_key (Optional[str]): Read the predictions from this span group. Without it they are
        read from ``doc.ents`` or, if no component sets that, from a component's span group.
    batch_size (Optional[int]): Documents a batch.
    observe (Optional[Callable]): Sees each gold document and the pipeline's own version of it.
    RETURNS (Evaluation): The figures.
    """
    evaluation = Evaluation()
    spans_key = spans_key or find_spans_key(nlp)
    for gold, predicted in predict(nlp, gold_docs, evaluation, batch_size=batch_size):
        if observe is not None:
            observe(gold, predicted)
        missing = missing_tokens(gold)
        evaluation.add(
            set(_triples(gold.ents)),
            {
                entity
                for entity in _triples(predicted_spans(predicted, spans_key))
                if not any(missing[entity[0] : entity[1]])
            },
        )
    return evaluation


def predict(
    nlp: Language,
    gold_docs: Iterable[Doc],
    evaluation: Evaluation,
    *,
    batch_size: int | None = None,
) -> Iterator[tuple[Doc, Doc]]:
    """Pair each gold document with the pipeline's own version of it.

    evaluation (Evaluation): Takes the counts and the time.
    YIELDS (Tuple[Doc, Doc]): Gold and predicted document, with the same tokens.
    """
    started = perf_counter()
    pairs = nlp.pipe(
        ((bare_copy(gold, nlp), gold) for gold in gold_docs), as_tuples=True, batch_size=batch_size
    )
    for predicted, gold in pairs:
        evaluation.documents += 1
        evaluation.tokens += len(gold)
        evaluation.seconds = perf_counter() - started
        yield gold, predicted


def find_spans_key(nlp: Language) -> str | None:
    """RETURNS (Optional[str]): The span group with a pipeline's predictions, or None for
    ``doc.ents``.
    """
    if any("doc.ents" in nlp.get_pipe_meta(name).assigns for name in nlp.pipe_names):
        return None
    keys = (getattr(nlp.get_pipe(name), "key", None) for name in nlp.pipe_names)
    return next((key for key in keys if key is not None), None)


def predicted_spans(doc: Doc, spans_key: str | None) -> list[Span]:
    """RETURNS (List[Span]): The predictions of a processed document."""
    return list(doc.ents) if spans_key is None else list(doc.spans.get(spans_key, []))


def bare_copy(doc: Doc, nlp: Language) -> Doc:
    """RETURNS (Doc): The same tokens without any annotation, for a pipeline to process."""
    return Doc(
        nlp.vocab,
        words=[token.text for token in doc],
        spaces=None if doc.has_unknown_spaces else [bool(token.whitespace_) for token in doc],
    )


def _triples(spans: Iterable[Span]) -> Iterator[Entity]:
    return ((span.start, span.end, span.label_) for span in spans)


def _figures(prf: PRFScore) -> dict[str, float | int]:
    return {
        "precision": prf.precision,
        "recall": prf.recall,
        "f1": prf.fscore,
        "gold": prf.tp + prf.fn,
        "predicted": prf.tp + prf.fp,
        "correct": prf.tp,
    }
