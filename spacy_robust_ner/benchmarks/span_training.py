"""What the span component adds to the encoder's training step."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import cast

import numpy as np
import spacy
import torch
from spacy.training import Example
from thinc.types import Floats2d
from torch import nn

from ..pipeline.span_ner import RobustSpanNER
from ..recipes import make_config
from .pipelines import loss_step
from .synthetic import as_examples, make_docs
from .timing import cpu_seconds

COMPONENT = "robust_span_ner"


@dataclass(frozen=True)
class TrainingCost:
    """One training step of one method.

    method (str): The recipe.
    length (int): Tokens a sentence.
    encoder_seconds (float): Processor time of the encoder's forward and backward pass.
    added_seconds (float): Processor time of reading the annotation, sampling, scoring spans, loss
        and backward pass to the token vectors.
    share (float): What the component adds, as a share of the encoder's step.
    """

    method: str
    length: int
    encoder_seconds: float
    added_seconds: float

    @property
    def share(self) -> float:
        return self.added_seconds / self.encoder_seconds


def measure_training(
    encoder: Path,
    *,
    methods: Sequence[str],
    lengths: Sequence[int],
    batch_size: int = 16,
    max_width: int = 10,
    repetitions: int = 7,
) -> list[TrainingCost]:
    """Time the training steps of several methods beside the encoder's own.

    The encoder is run bare in PyTorch, forward and backward, with one word piece a token and
    without optimizer, alignment or pooling: everything else that a real step costs is left out,
    and the component's share would be smaller with it.

    encoder (Path): A directory or name that transformers can load.
    methods (Sequence[str]): Names of span recipes.
    lengths (Sequence[int]): Tokens a sentence.
    batch_size (int): Sentences a batch.
    max_width (int): Tokens in the widest candidate span.
    repetitions (int): Steps of each; the median counts.
    RETURNS (List[TrainingCost]): Each method at each length.
    """
    from transformers import AutoModel

    network = AutoModel.from_pretrained(str(encoder)).train()
    width = network.config.hidden_size
    costs = []
    for length in lengths:
        jobs: dict[str, Callable[[], object]] = {
            "": partial(_encoder_step, network, batch_size, length + 2)
        }
        for method in methods:
            jobs[method] = _component_step(method, width, batch_size, length, max_width)
        seconds = cpu_seconds(jobs, repetitions=repetitions)
        costs += [TrainingCost(name, length, seconds[""], seconds[name]) for name in methods]
    return costs


def _encoder_step(network: nn.Module, batch_size: int, length: int) -> None:
    pieces = torch.arange(batch_size * length).reshape(batch_size, length) % 100 + 5
    output = network(pieces, attention_mask=torch.ones_like(pieces)).last_hidden_state
    output.backward(torch.full_like(output, 1e-3))
    network.zero_grad()


def _component_step(
    method: str, width: int, batch_size: int, length: int, max_width: int
) -> Callable[[], object]:
    component, examples = make_component(
        method, width=width, batch_size=batch_size, length=length, max_width=max_width
    )
    rng = np.random.default_rng(0)
    vectors = [
        cast(Floats2d, rng.standard_normal((length, width), dtype=np.float32)) for _ in examples
    ]
    return loss_step(component, examples, vectors)


def make_component(
    method: str, *, width: int, batch_size: int, length: int, max_width: int
) -> tuple[RobustSpanNER, list[Example]]:
    """Make the component of a recipe, with weights for token vectors of some width.

    RETURNS (Tuple[RobustSpanNER, List[Example]]): The component, and a batch of which half the
        entities are labeled.
    """
    settings = make_config(method, "cnn").interpolate()["components"][COMPONENT]
    settings.pop("factory")
    settings["model"]["max_width"] = max_width
    settings["model"]["tok2vec"] = {
        "@architectures": "spacy.HashEmbedCNN.v2",
        "pretrained_vectors": None,
        "width": width,
        "depth": 1,
        "embed_size": 100,
        "window_size": 1,
        "maxout_pieces": 2,
        "subword_features": False,
    }
    nlp = spacy.blank("en")
    component = cast(RobustSpanNER, nlp.add_pipe(COMPONENT, config=settings))
    docs = make_docs(nlp.vocab, count=batch_size, length=length, labeled=0.5)
    examples = as_examples(docs)
    component.initialize(lambda: as_examples(docs), nlp=nlp)
    return component, examples
