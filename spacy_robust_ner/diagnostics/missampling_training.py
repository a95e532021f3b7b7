"""Train a pipeline and count missampling as it goes."""

import sys
from pathlib import Path
from typing import IO

from spacy.training.initialize import init_nlp
from spacy.training.loop import train
from thinc.api import Config

from ..corpus.io import read_docs
from .missampling import MissamplingObserver, find_component


def train_with_observer(
    config: Config,
    gold: Path,
    *,
    output: Path | None = None,
    component: str | None = None,
    use_gpu: int = -1,
    stdout: IO[str] = sys.stdout,
    stderr: IO[str] = sys.stderr,
) -> MissamplingObserver:
    """Train as `spacy train` does, with an observer on the span component.

    config (Config): A complete training config with its paths set, not yet interpolated.
    gold (Path): The training corpus with all entities.
    output (Optional[Path]): Where to save the pipeline.
    component (Optional[str]): The component's name; the first of its kind if not given.
    use_gpu (int): The GPU, or -1 for the CPU.
    stdout (IO[str]): Where the training log goes.
    stderr (IO[str]): Where warnings of training go.
    RETURNS (MissamplingObserver): The observer; its `epochs` hold the rate of each epoch.
    """
    nlp = init_nlp(config, use_gpu=use_gpu)
    pipe = find_component(nlp, component)
    observer = MissamplingObserver.watch(pipe, read_docs(gold, nlp.vocab))
    if output is not None:
        output.mkdir(parents=True, exist_ok=True)
    try:
        train(nlp, output, use_gpu=use_gpu, stdout=stdout, stderr=stderr)
    finally:
        pipe.sample_observer = None
    return observer
