"""What exploring before training adds to a whole training run."""

from functools import partial
from pathlib import Path

from spacy.language import Language
from spacy.schemas import ConfigSchemaTraining
from spacy.training import Example
from spacy.util import registry

from ..pipeline.token_tagger import RobustTokenTagger
from ..pipeline.trial import trial
from ..pipeline.two_step import rank_outside
from .ratio import Ratio
from .tagger_training import TWO_STEP, get_tagger, prepare_pipeline
from .timing import cpu_seconds

# Of table 8 of the paper.
EXPLORATION_LIMITS = {1: 0.08, 2: 0.14, 3: 0.20}
_LENGTH = 25


def measure_exploration(
    encoder: Path | None,
    *,
    documents: int = 128,
    run_epochs: int = 20,
    repetitions: int = 3,
) -> list[Ratio]:
    """Time an epoch of exploration, the prediction pass that ranks all tokens, and an epoch of
    the training that follows, with removal and NON spans. Evaluation, which would make the run
    longer and the share smaller, is left out.

    encoder (Optional[Path]): A directory or name that transformers can load; None for the CNN.
    documents (int): Sentences of the training corpus.
    run_epochs (int): Epochs of the run.
    repetitions (int): Runs of each; the median counts.
    RETURNS (List[Ratio]): The share for each number of epochs of exploration.
    """
    nlp, examples = prepare_pipeline(TWO_STEP, encoder, length=_LENGTH, count=documents)
    tagger = get_tagger(nlp)
    seconds = cpu_seconds(
        {
            "explore": partial(_explore, nlp, tagger, examples),
            "rank": partial(rank_outside, nlp, tagger, examples),
            "train": partial(_train_epoch, nlp, examples),
        },
        repetitions=repetitions,
    )
    return [
        Ratio(
            "exploration",
            "cnn" if encoder is None else "trf",
            f"exploration, n = {n}",
            n * seconds["explore"] + seconds["rank"],
            f"{run_epochs} epochs of {TWO_STEP}",
            run_epochs * seconds["train"],
            limit,
        )
        for n, limit in EXPLORATION_LIMITS.items()
    ]


def _explore(nlp: Language, tagger: RobustTokenTagger, examples: list[Example]) -> None:
    with trial(nlp, tagger) as attempt:
        attempt.train(examples, epochs=1, title="Exploring")


def _train_epoch(nlp: Language, examples: list[Example]) -> None:
    config = nlp.config.interpolate()["training"]
    settings = registry.resolve(config, schema=ConfigSchemaTraining)
    for batch in settings["batcher"](examples):
        nlp.update(batch, sgd=settings["optimizer"], drop=settings["dropout"])
        settings["optimizer"].step_schedules()
