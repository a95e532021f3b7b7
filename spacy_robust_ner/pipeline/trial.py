"""Training inside of initialization that leaves no trace but what was learned from it.

Methods in two steps need a model before training begins. A trial trains a component and the
encoder that it listens to exactly as the run's first epochs would: same optimizer settings,
batches, order and dropout. Afterwards weights, gradients and random generators are what they were.
"""

import copy
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from spacy.language import Language
from spacy.schemas import ConfigSchemaInit, ConfigSchemaPretrain, ConfigSchemaTraining
from spacy.training import Example
from spacy.training.initialize import init_tok2vec
from spacy.training.loop import subdivide_batch
from spacy.util import minibatch, registry
from thinc.api import Model, constant, fix_random_seed
from torch import Tensor
from tqdm import tqdm

from ..errors import Errors
from .span_batch import run_component
from .token_losses import TokenLossBlock

if TYPE_CHECKING:
    from .token_tagger import RobustTokenTagger

PREDICTION_BATCH = 64


def shared_encoders(nlp: Language, pipe: "RobustTokenTagger") -> list[tuple[str, Any]]:
    """RETURNS (List[Tuple[str, Any]]): The components that a component listens to, in order."""
    return [
        (name, component)
        for name, component in nlp.components
        if pipe.name in getattr(component, "listener_map", {})
    ]


def decision_batches(
    nlp: Language, pipe: "RobustTokenTagger", examples: Iterable[Example]
) -> Iterator[tuple[list[Example], Tensor, Tensor]]:
    """Score the tags of all tokens, without dropout.

    nlp (Language): The pipeline.
    pipe (RobustTokenTagger): The component.
    examples (Iterable[Example]): The examples.
    YIELDS (Tuple[List[Example], Tensor, Tensor]): Some examples, the decision values of their
        tokens and the lengths. Shapes: (tokens, tags), (documents,).
    """
    encoders = shared_encoders(nlp, pipe)
    for batch in minibatch(examples, PREDICTION_BATCH):
        docs = [example.predicted.copy() for example in batch]
        for _, encoder in encoders:
            docs = run_component(encoder, docs)
        yield (batch, *pipe.decisions(docs))


class Trial:
    """A component in training for a while.

    nlp (Language): The pipeline.
    pipe (RobustTokenTagger): The component, which has been initialized.
    """

    def __init__(self, nlp: Language, pipe: "RobustTokenTagger") -> None:
        self.nlp = nlp
        self.pipe = pipe
        self._encoders = shared_encoders(nlp, pipe)

    def train(
        self,
        examples: Iterable[Example],
        *,
        epochs: int,
        title: str,
        after_epoch: Callable[[int], None] | None = None,
    ) -> None:
        """Train as the run would.

        examples (Iterable[Example]): The training examples.
        epochs (int): How many epochs.
        title (str): What the progress bar says.
        after_epoch (Optional[Callable[[int], None]]): Is told how many epochs are completed. It
            may predict, but must not draw random numbers.
        """
        config = self.nlp.config.interpolate()
        settings = registry.resolve(config["training"], schema=ConfigSchemaTraining)
        if settings["max_epochs"] == -1:
            raise ValueError(Errors.R183.format(name=self.pipe.name))
        frozen = set(settings["frozen_components"])
        annotating = set(settings["annotating_components"])
        learning = [(name, encoder) for name, encoder in self._encoders if name not in frozen]
        optimizer, dropouts = settings["optimizer"], settings["dropout"]
        if isinstance(dropouts, float):
            dropouts = constant(dropouts)
        self._load_pretrained(config)
        if settings["seed"] is not None:
            fix_random_seed(settings["seed"])
        examples = list(examples)
        with tqdm(total=epochs * len(examples), desc=title, unit=" docs", disable=None) as bar:
            for epoch in range(epochs):
                # spaCy's own loop shuffles so; the trial shall see what the run would see.
                random.shuffle(examples)
                self.pipe.progress.tell(epoch)
                for batch in settings["batcher"](examples):
                    dropout = next(dropouts)
                    for part in subdivide_batch(batch, settings["accumulate_gradient"]):
                        self._update(part, dropout, frozen=frozen, annotating=annotating)
                    for _, component in (*learning, (self.pipe.name, self.pipe)):
                        component.finish_update(optimizer)
                    optimizer.step_schedules()
                    bar.update(len(batch))
                if after_epoch is not None:
                    after_epoch(epoch + 1)

    def decisions(
        self, examples: Iterable[Example]
    ) -> Iterator[tuple[list[Example], Tensor, Tensor]]:
        """See `decision_batches`."""
        return decision_batches(self.nlp, self.pipe, examples)

    def _update(
        self, examples: Sequence[Example], dropout: float, *, frozen: set[str], annotating: set[str]
    ) -> None:
        copies = [Example(example.x.copy(), example.y) for example in examples]
        for name, encoder in self._encoders:
            if name not in frozen:
                encoder.update(copies, drop=dropout, sgd=None, losses={})
            if name in annotating:
                docs = run_component(encoder, [example.predicted for example in copies])
                for example, doc in zip(copies, docs, strict=True):
                    example.predicted = doc
        self.pipe.update(copies, drop=dropout, sgd=None, losses={})

    def _load_pretrained(self, config: Any) -> None:
        # spaCy loads pretrained weights of a tok2vec only after all components are initialized.
        if config.get("pretraining") and config["initialize"]["init_tok2vec"] is not None:
            pretraining = registry.resolve(config["pretraining"], schema=ConfigSchemaPretrain)
            initialize = registry.resolve(config["initialize"], schema=ConfigSchemaInit)
            init_tok2vec(self.nlp, pretraining, initialize)


@contextmanager
def trial(
    nlp: Language, pipe: "RobustTokenTagger", *, loss: TokenLossBlock | None = None
) -> Iterator[Trial]:
    """Try something out: within the context, a component and its encoder can be trained on the
    data as they are, without removal and sampling. All is undone at its end.

    nlp (Language): The pipeline.
    pipe (RobustTokenTagger): The component, which has been initialized.
    loss (Optional[TokenLossBlock]): Another loss than the component's own.
    YIELDS (Trial): The trial.
    """
    encoders = [encoder for _, encoder in shared_encoders(nlp, pipe)]
    with ExitStack() as stack:
        stack.enter_context(_kept_generators())
        for component in (*encoders, pipe):
            stack.enter_context(_kept_weights(component.model))
        for encoder in encoders:
            stack.enter_context(_only_listener(encoder, pipe.name))
        stack.enter_context(pipe.on_plain_data(loss=loss))
        yield Trial(nlp, pipe)


@contextmanager
def _kept_generators() -> Iterator[None]:
    # The weights of components that are initialized later depend on them.
    states = random.getstate(), np.random.get_state(), torch.get_rng_state()
    on_gpus = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
    try:
        yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])
        torch.set_rng_state(states[2])
        if on_gpus:
            torch.cuda.set_rng_state_all(on_gpus)


@contextmanager
def _kept_weights(model: Model[Any, Any]) -> Iterator[None]:
    nodes = list(model.walk())
    params = [
        (node, name, node.get_param(name).copy())
        for node in nodes
        for name in node.param_names
        if node.has_param(name)
    ]
    shims: list[Any] = [shim for node in nodes for shim in node.shims if hasattr(shim, "_model")]
    modules = [shim._model for shim in shims]
    states = [None if m is None else copy.deepcopy(m.state_dict()) for m in modules]
    modes = [None if m is None else m.training for m in modules]
    scalers = [copy.deepcopy(getattr(shim, "_grad_scaler", None)) for shim in shims]
    try:
        yield
    finally:
        for node, name, value in params:
            node.set_param(name, value)
            if node.has_grad(name):
                node.set_grad(name, node.ops.alloc(value.shape, dtype=value.dtype))
        for i, module in enumerate(modules):
            shims[i]._grad_scaler = scalers[i]
            if module is not None:
                module.load_state_dict(states[i])
                module.zero_grad(set_to_none=True)
                module.train(modes[i])


@contextmanager
def _only_listener(encoder: Any, name: str) -> Iterator[None]:
    """An encoder learns when its last listener has learned, and later ones don't take part."""
    everyone = encoder.listener_map
    encoder.listener_map = {name: everyone[name]}
    try:
        yield
    finally:
        for listener in encoder.listener_map[name]:
            listener._batch_id = listener._outputs = listener._backprop = None
        encoder.listener_map = everyone
