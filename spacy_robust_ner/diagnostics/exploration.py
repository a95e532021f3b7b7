"""Train as the first of two steps would, and look at the O-values after each epoch.

The O-value of a token is the entry "O" of its decision values. Which tokens marked "O" are in truth
of unlabeled entities needs the gold annotation of the training corpus, so this is a study of
two-step learning and not a part of training.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from spacy.language import Language
from spacy.training import Example
from spacy.training.initialize import init_nlp
from thinc.api import Config

from ..errors import Errors
from ..pipeline.token_batch import TokenReader
from ..pipeline.token_tagger import RobustTokenTagger
from ..pipeline.trial import Trial, trial
from ..reader import training_reader
from ..tagging.o_removal import o_values
from .detection import Detection, ValueSummary, detect, separation, summarize

FACTORY = "robust_token_tagger"
UNLABELED, OUTSIDE, LABELED = "unlabeled", "outside", "labeled"
_NEITHER, _KINDS = 0, {UNLABELED: 1, OUTSIDE: 2, LABELED: 3}


@dataclass(frozen=True)
class EpochValues:
    """The O-values after an epoch.

    epoch (int): Completed epochs.
    training_seconds (float): Processor time of the epoch.
    ranking_seconds (float): Processor time of the prediction pass for the O-values.
    groups (Dict[str, Optional[ValueSummary]]): O-values of tokens of unlabeled entities, of tokens
        that are "O" by right, and of labeled entities.
    gap (float): The mean of "O" by right less that of unlabeled entities.
    separation (float): The same in standard deviations of a token.
    detection (Detection): What removing low values finds.
    """

    epoch: int
    training_seconds: float
    ranking_seconds: float
    groups: dict[str, ValueSummary | None]
    gap: float
    separation: float
    detection: Detection

    def mean(self, group: str) -> float:
        """RETURNS (float): The mean O-value of a group that has tokens."""
        summary = self.groups[group]
        return float("nan") if summary is None else summary.mean


@dataclass(frozen=True)
class Exploration:
    """One training run.

    name (str): What was trained.
    head (str): The head's architecture.
    crf (bool): Whether a CRF is over the head.
    encoder (str): The component that holds the encoder.
    seed (int): The seed.
    documents (int): Training documents.
    unlabeled_entities (int): Entities that only the gold corpus has.
    epochs (List[EpochValues]): The figures after each epoch.
    """

    name: str
    head: str
    crf: bool
    encoder: str
    seed: int
    documents: int
    unlabeled_entities: int
    epochs: list[EpochValues]

    def to_dict(self) -> dict[str, Any]:
        """RETURNS (Dict[str, Any]): The figures as JSON-serializable data."""
        return asdict(self)


def explore(
    config: Config,
    masked: Path,
    gold: Path,
    *,
    name: str,
    epochs: int = 10,
    seed: int = 0,
    use_gpu: int = -1,
    after_epoch: Callable[[EpochValues], None] | None = None,
) -> Exploration:
    """Train on a masked corpus exactly as two-step learning explores it: with the optimizer,
    batches and dropout of the config, without removal and sampling.

    config (Config): A training config with robust_token_tagger, not yet interpolated.
    masked (Path): The training corpus.
    gold (Path): The same documents with all entities.
    name (str): What to call the run.
    epochs (int): How long to train.
    seed (int): The seed.
    use_gpu (int): The GPU, or -1 for the CPU.
    after_epoch (Optional[Callable]): Is told the figures of each epoch.
    RETURNS (Exploration): The figures.
    """
    if epochs < 1:
        raise ValueError(Errors.R086.format(option="epochs", value=epochs, minimum=1))
    nlp = init_nlp(_prepared(config, masked, seed, name), use_gpu=use_gpu)
    pipe = find_tagger(nlp, path=name)
    examples = [example for example in training_reader(nlp, masked)(nlp) if len(example.predicted)]
    gold_examples = [example for example in training_reader(nlp, gold)(nlp) if len(example.x)]
    tokens = classify_tokens(pipe.reader, examples, gold_examples)
    if not all((tokens.kinds == _KINDS[kind]).any() for kind in (UNLABELED, OUTSIDE)):
        raise ValueError(Errors.R194.format(gold=gold, masked=masked))
    found: list[EpochValues] = []
    with trial(nlp, pipe) as attempt:
        started = time.process_time()

        def record(epoch: int) -> None:
            nonlocal started
            trained = time.process_time()
            values = _all_values(attempt, examples)
            ranked = time.process_time()
            found.append(
                _epoch_values(epoch, trained - started, ranked - trained, values, tokens.kinds)
            )
            if after_epoch is not None:
                after_epoch(found[-1])
            started = time.process_time()

        attempt.train(examples, epochs=epochs, title=f"Exploring: {name}", after_epoch=record)
    block = nlp.config["components"][pipe.name]["model"]
    return Exploration(
        name=name,
        head=block["head"]["@architectures"].split(".")[1],
        crf=pipe.head.crf is not None,
        encoder=next((n for n, part in nlp.pipeline if hasattr(part, "listeners")), pipe.name),
        seed=seed,
        documents=len(examples),
        unlabeled_entities=tokens.unlabeled_entities,
        epochs=found,
    )


def find_tagger(nlp: Language, name: str | None = None, *, path: str) -> RobustTokenTagger:
    """nlp (Language): The pipeline.
    name (Optional[str]): The component; the first of its kind if not given.
    path (str): What the pipeline is called in the error message.
    RETURNS (RobustTokenTagger): The component.
    """
    for own_name, pipe in nlp.components:
        if isinstance(pipe, RobustTokenTagger) and name in (None, own_name):
            return pipe
    wanted = "" if name is None else f" of the name '{name}'"
    known = ", ".join(nlp.pipe_names)
    raise ValueError(Errors.R193.format(path=path, wanted=wanted, known=known))


@dataclass(frozen=True)
class TokenKinds:
    """What the tokens of a corpus are.

    kinds (NDArray[int8]): The kind of each token, the documents one after another.
        Shape: (tokens,).
    unlabeled_entities (int): Entities that only the gold corpus has.
    """

    kinds: NDArray[np.int8]
    unlabeled_entities: int


def classify_tokens(
    reader: TokenReader, examples: Sequence[Example], gold: Sequence[Example]
) -> TokenKinds:
    """Tell the tokens apart. Those that can't be removed are of neither kind: their annotation is
    missing, or somebody vouches for their "O".

    reader (TokenReader): Reads the annotation, as training does.
    examples (Sequence[Example]): The training examples.
    gold (Sequence[Example]): The same with all entities.
    RETURNS (TokenKinds): The kinds.
    """
    # What the gold corpus says stays true of labels that training would withdraw.
    read_truth = replace(reader.read_targets, doubtful=(), without_fragments=False)
    kinds, n_unlabeled = [], 0
    for number, (example, other) in enumerate(zip_longest(examples, gold)):
        _check_pair(number, example, other)
        target, truth = reader.read_targets(example), read_truth(other)
        is_entity = np.zeros(len(example.predicted), dtype=bool)
        for start, end, _ in truth.entities:
            is_entity[start:end] = True
        own = np.full(len(is_entity), _NEITHER, dtype=np.int8)
        for start, end, _ in target.entities:
            own[start:end] = _KINDS[LABELED]
        candidates = reader.outside_candidates(example)
        own[candidates] = np.where(is_entity, _KINDS[UNLABELED], _KINDS[OUTSIDE])[candidates]
        own[truth.missing] = _NEITHER
        kinds.append(own)
        n_unlabeled += len({*truth.entities} - {*read_truth(example).entities})
    return TokenKinds(np.concatenate([np.zeros(0, dtype=np.int8), *kinds]), n_unlabeled)


def _check_pair(number: int, example: Example | None, other: Example | None) -> None:
    if example is None or other is None:
        reason = f"the {'masked' if example is None else 'gold'} corpus ends before it"
        raise ValueError(Errors.R130.format(number=number, reason=reason))
    one, two = ([token.text for token in eg.predicted] for eg in (example, other))
    if one != two:
        texts = (repr(eg.predicted.text[:40]) for eg in (example, other))
        reason = f"the tokens of {' and '.join(texts)} are not the same"
        raise ValueError(Errors.R130.format(number=number, reason=reason))


def _prepared(config: Config, masked: Path, seed: int, name: str) -> Config:
    """RETURNS (Config): A config that trains on the masked corpus, and explores nothing itself."""
    config = config.copy()
    training = config["training"]
    for corpus in (training["train_corpus"], training["dev_corpus"]):
        config["corpora"][corpus.split(".", 1)[1]]["path"] = str(masked)
    config["system"]["seed"] = training["seed"] = seed
    blocks = [block for block in config["components"].values() if block.get("factory") == FACTORY]
    if not blocks:
        known = ", ".join(config["nlp"]["pipeline"])
        raise ValueError(Errors.R193.format(path=name, wanted="", known=known))
    for block in blocks:
        block["two_step"] = None
    return config


def _all_values(attempt: Trial, examples: Sequence[Example]) -> NDArray[np.float64]:
    """RETURNS (NDArray[float64]): The O-values of all tokens. Shape: (tokens,)."""
    return np.concatenate([o_values(decisions) for _, decisions, _ in attempt.decisions(examples)])


def _epoch_values(
    epoch: int,
    training_seconds: float,
    ranking_seconds: float,
    values: NDArray[np.float64],
    kinds: NDArray[np.int8],
) -> EpochValues:
    groups = {name: summarize(values[kinds == kind]) for name, kind in _KINDS.items()}
    is_candidate = (kinds == _KINDS[UNLABELED]) | (kinds == _KINDS[OUTSIDE])
    hidden, outside = groups[UNLABELED], groups[OUTSIDE]
    gap, distance = 0.0, 0.0
    if hidden is not None and outside is not None:
        gap, distance = outside.mean - hidden.mean, separation(hidden, outside)
    return EpochValues(
        epoch=epoch,
        training_seconds=training_seconds,
        ranking_seconds=ranking_seconds,
        groups=groups,
        gap=gap,
        separation=distance,
        detection=detect(values[is_candidate], (kinds == _KINDS[UNLABELED])[is_candidate]),
    )
