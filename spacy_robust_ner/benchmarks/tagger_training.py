"""What the token component adds to the encoder's training step."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

from spacy.language import Language
from spacy.training import Example
from thinc.api import Adam
from thinc.types import Floats2d
from torch import zeros

from ..pipeline.token_tagger import RobustTokenTagger
from ..pipeline.two_step import rank_outside
from .pipelines import loss_step, make_pipeline
from .ratio import Ratio
from .synthetic import as_examples, make_docs
from .timing import cpu_seconds

COMPONENT = "robust_token_tagger"
OURS, RIVAL, TWO_STEP = "token-ratio", "ner", "two-step-crf"
LOSS_LIMIT, BOOKKEEPING_LIMIT, RIVAL_LIMIT = 0.15, 0.03, 1.15
_DROPOUT = 0.1
# Weights that stay what they are keep the steps alike.
_LEARN_RATE = 1e-7
_REMOVED_SHARE = 0.025


def make_tagger_pipeline(method: str, encoder: Path | None) -> Language:
    """RETURNS (Language): The pipeline of a recipe, without exploration."""

    def change(components: dict[str, Any]) -> None:
        settings = components.get(COMPONENT, {})
        if COMPONENT in components:
            settings["head_learn_rate_scale"] = 1.0
        if settings.get("two_step") is not None:
            settings["two_step"]["epochs"] = 0

    return make_pipeline(method, encoder, change=change)


def get_tagger(nlp: Language) -> RobustTokenTagger:
    """RETURNS (RobustTokenTagger): The component of a recipe's pipeline."""
    return cast(RobustTokenTagger, nlp.get_pipe(COMPONENT))


def sentences_a_batch(nlp: Language, length: int) -> int:
    """RETURNS (int): How many sentences of some length the recipe's batches have."""
    batcher = nlp.config["training"]["batcher"]
    counts_words = "words" in batcher["@batchers"]
    return max(1, round(batcher["size"] / length)) if counts_words else int(batcher["size"])


def measure_training(
    encoder: Path | None,
    *,
    methods: Sequence[str],
    lengths: Sequence[int],
    batch_size: int | None = None,
    repetitions: int = 7,
) -> list[Ratio]:
    """Time what some methods add to the encoder's forward and backward pass (with all that
    belongs to it in spaCy, without the optimizer), the removal of tokens and the sampling of NON
    spans within a training step, and a step of ours beside one of `ner`.

    encoder (Optional[Path]): A directory or name that transformers can load; None for the CNN.
    methods (Sequence[str]): Names of token recipes.
    lengths (Sequence[int]): Tokens a sentence.
    batch_size (Optional[int]): Sentences a batch; as in the recipe if not given.
    repetitions (int): Steps of each; the median counts.
    RETURNS (List[Ratio]): The figures.
    """
    found = []
    for length in lengths:
        jobs: dict[str, Callable[[], object]] = {}
        for method in dict.fromkeys((*methods, OURS, TWO_STEP, RIVAL)):
            nlp, examples = prepare_pipeline(method, encoder, length=length, count=batch_size)
            if method in (OURS, TWO_STEP, RIVAL):
                optimizer = Adam(_LEARN_RATE)
                jobs[f"step {method}"] = partial(nlp.update, examples, sgd=optimizer, drop=_DROPOUT)
            if method == RIVAL:
                continue
            tagger = get_tagger(nlp)
            vectors = encoder_step(nlp, tagger, examples)
            jobs.setdefault("encoder", partial(encoder_step, nlp, tagger, examples))
            jobs[f"loss {method}"] = loss_step(tagger, examples, vectors)
            if method == TWO_STEP:
                jobs["read"], jobs["read plainly"] = _reading(tagger, examples)
        seconds = cpu_seconds(jobs, repetitions=repetitions, warm_up=2)
        found += _ratios(seconds, methods, length, "cnn" if encoder is None else "trf")
    return found


def prepare_pipeline(
    method: str, encoder: Path | None, *, length: int, count: int | None = None
) -> tuple[Language, list[Example]]:
    """Initialize the pipeline of a recipe. A method in two steps also gets its removed tokens.

    method (str): The recipe.
    encoder (Optional[Path]): See `measure_training`.
    length (int): Tokens a sentence.
    count (Optional[int]): Sentences; as many as a batch of the recipe has if not given.
    RETURNS (Tuple[Language, List[Example]]): The pipeline, and sentences of whose entities half
        are labeled.
    """
    nlp = make_tagger_pipeline(method, encoder)
    count = count or sentences_a_batch(nlp, length)
    docs = make_docs(nlp.vocab, count=count, length=length, labeled=0.5)
    nlp.initialize(partial(as_examples, docs))
    examples = as_examples(docs)
    if method == TWO_STEP:
        tagger = get_tagger(nlp)
        tagger.removed = rank_outside(nlp, tagger, examples).select(_REMOVED_SHARE)
    return nlp, examples


def encoder_step(
    nlp: Language, tagger: RobustTokenTagger, examples: Sequence[Example]
) -> list[Floats2d]:
    """Run the encoder forward and backward.

    nlp (Language): The pipeline; the encoder is its first component.
    tagger (RobustTokenTagger): The component that listens to it.
    examples (Sequence[Example]): A batch.
    RETURNS (List[Floats2d]): Its token vectors.
    """
    cast(Any, nlp.pipeline[0][1]).update(examples, drop=_DROPOUT, sgd=None)
    vectors, backprop = tagger.model.begin_update([example.predicted for example in examples])
    backprop([array * 0 + 1e-3 for array in vectors])
    return [array.copy() for array in vectors]


def _reading(
    tagger: RobustTokenTagger, examples: Sequence[Example]
) -> tuple[Callable[[], object], Callable[[], object]]:
    """RETURNS (Tuple[Callable, Callable]): Read a batch with removal and NON spans, and without."""
    reader = tagger.reader
    plain = replace(reader, removed=None, non_sampling=None)
    emissions = zeros(sum(len(example.predicted) for example in examples), len(tagger.tag_set))
    return partial(reader.read, examples, emissions), partial(plain.read, examples, emissions)


def _ratios(
    seconds: dict[str, float], methods: Sequence[str], length: int, encoder: str
) -> list[Ratio]:
    place = f"{length} tokens"
    found = [
        Ratio(
            "training",
            encoder,
            f"{method}: head, loss, gradients, {place}",
            seconds[f"loss {method}"],
            "encoder's forward and backward pass",
            seconds["encoder"],
            LOSS_LIMIT,
        )
        for method in methods
    ]
    found.append(
        Ratio(
            "training",
            encoder,
            f"removal and NON spans, {place}",
            max(0.0, seconds["read"] - seconds["read plainly"]),
            f"training step of {TWO_STEP}",
            seconds[f"step {TWO_STEP}"],
            BOOKKEEPING_LIMIT,
        )
    )
    found.append(
        Ratio(
            "training",
            encoder,
            f"training step of {OURS}, {place}",
            seconds[f"step {OURS}"],
            f"training step of {RIVAL}",
            seconds[f"step {RIVAL}"],
            RIVAL_LIMIT,
        )
    )
    return found
