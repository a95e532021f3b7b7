"""Pipelines of the recipes, ready to be timed."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import load_model_from_config
from thinc.api import Adam, fix_random_seed
from thinc.types import Floats2d

from ..architectures.torch_layer import torch_module
from ..pipeline.robust_pipe import RobustPipe
from ..recipes import make_config
from .synthetic import as_examples, bare_copy, make_docs

_BRIEF_BATCH, _BRIEF_LENGTH, _LEARN_RATE = 16, 15, 2e-3


def make_pipeline(
    method: str,
    encoder: Path | None,
    *,
    change: Callable[[dict[str, Any]], None] = lambda components: None,
) -> Language:
    """Make the pipeline of a recipe, without initializing it.

    method (str): The recipe.
    encoder (Optional[Path]): A directory or name that transformers can load; None for the CNN.
    change (Callable): Changes the components' settings.
    RETURNS (Language): The pipeline.
    """
    if encoder is None:
        config = make_config(method, "cnn")
    else:
        config = make_config(method, "trf", gpu=False, transformer=str(encoder))
    change(config["components"])
    fix_random_seed(0)
    return load_model_from_config(config.interpolate(), auto_fill=True)


def train_briefly(nlp: Language, *, steps: int, spans_key: str | None = None) -> None:
    """Initialize a pipeline and train all but its encoder on made-up sentences: an untrained
    component would find entities everywhere, and spend its time on writing them.

    nlp (Language): The pipeline; the encoder is its first component.
    steps (int): Batches to learn from.
    spans_key (Optional[str]): Offer the entities as this span group, too.
    """
    count = _BRIEF_BATCH * max(1, steps)
    docs = make_docs(nlp.vocab, count=count, length=_BRIEF_LENGTH, seed=1)
    examples = as_examples(docs, spans_key=spans_key)
    nlp.initialize(lambda: examples)
    # A few steps would ruin a transformer with random weights rather than train it.
    frozen = nlp.pipe_names[:1]
    optimizer = Adam(_LEARN_RATE)
    for step in range(steps):
        batch = examples[_BRIEF_BATCH * step : _BRIEF_BATCH * (step + 1)]
        nlp.update(batch, sgd=optimizer, exclude=frozen, annotates=frozen)


def process(nlp: Language, docs: Iterable[Doc]) -> list[Doc]:
    """RETURNS (List[Doc]): The words of documents, processed."""
    return list(nlp.pipe(bare_copy(doc) for doc in docs))


def loss_step(
    component: RobustPipe, examples: Sequence[Example], vectors: list[Floats2d]
) -> Callable[[], None]:
    """component (RobustPipe): A robust component, which has been initialized.
    examples (Sequence[Example]): A batch.
    vectors (List[Floats2d]): Its token vectors.
    RETURNS (Callable): Does what the component adds to the encoder's training step: reading the
        annotation, scoring, loss and backward pass to the token vectors.
    """

    def step() -> None:
        component.get_loss(examples, vectors)
        torch_module(component.model.get_ref("head")).zero_grad()

    return step
