"""How fast pipelines with the same transformer find entities."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc

from .pipelines import make_pipeline, process, train_briefly
from .synthetic import make_docs
from .timing import cpu_seconds

OURS, RIVALS = "robust_span_ner", ("ner", "spancat_singlelabel")
_RECIPES = {OURS: "span-segments", "ner": "ner", "spancat_singlelabel": "spancat"}
_SPANS_KEY = "sc"


@dataclass(frozen=True)
class InferenceSpeed:
    """One pipeline's speed.

    component (str): What follows the transformer.
    words_per_second (float): Words by processor seconds.
    entities (int): How many it found; writing them costs time, so they should be about as many.
    """

    component: str
    words_per_second: float
    entities: int


def measure_inference(
    encoder: Path,
    *,
    documents: int = 64,
    length: int = 25,
    max_width: int = 10,
    train_steps: int = 40,
    repetitions: int = 5,
) -> list[InferenceSpeed]:
    """Time `nlp.pipe` of a transformer with each of the components, from made documents to
    annotated ones. Each pipeline is first trained for a few steps on sentences of the same kind:
    an untrained one would find entities everywhere, and spend its time on writing them.

    encoder (Path): A directory or name that transformers can load.
    documents (int): Documents to process.
    length (int): Tokens in each.
    max_width (int): Tokens in the widest candidate span, of ours and of the span categorizer.
    train_steps (int): Batches to train on before.
    repetitions (int): Runs of each; the median counts.
    RETURNS (List[InferenceSpeed]): The pipelines.
    """
    pipelines = {
        component: _make_pipeline(component, encoder, max_width=max_width, steps=train_steps)
        for component in (OURS, *RIVALS)
    }
    jobs = {
        component: partial(_process, nlp, documents, length) for component, nlp in pipelines.items()
    }
    seconds = cpu_seconds(jobs, repetitions=repetitions)
    return [
        InferenceSpeed(
            component,
            documents * length / seconds[component],
            sum(_count(doc) for doc in _process(nlp, documents, length)),
        )
        for component, nlp in pipelines.items()
    ]


def ratios(speeds: Sequence[InferenceSpeed]) -> dict[str, float]:
    """RETURNS (Dict[str, float]): The speed of ours as a multiple of each rival's."""
    by_name = {speed.component: speed.words_per_second for speed in speeds}
    return {rival: by_name[OURS] / by_name[rival] for rival in RIVALS}


def _make_pipeline(component: str, encoder: Path, *, max_width: int, steps: int) -> Language:
    def change(components: dict[str, Any]) -> None:
        settings = components[component]
        if component == OURS:
            settings["model"]["max_width"] = max_width
            settings["head_learn_rate_scale"] = 1.0
        elif component == "spancat_singlelabel":
            settings["suggester"]["max_size"] = max_width

    nlp = make_pipeline(_RECIPES[component], encoder, change=change)
    train_briefly(nlp, steps=steps, spans_key=_SPANS_KEY)
    return nlp


def _process(nlp: Language, documents: int, length: int) -> list[Doc]:
    return process(nlp, make_docs(nlp.vocab, count=documents, length=length))


def _count(doc: Doc) -> int:
    return len(doc.spans[_SPANS_KEY]) if _SPANS_KEY in doc.spans else len(doc.ents)
