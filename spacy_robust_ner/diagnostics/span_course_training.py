"""Train a pipeline and follow its spans."""

import sys
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import IO, Any

from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.training.initialize import init_nlp
from spacy.training.loop import train
from spacy.util import registry, resolve_dot_names
from thinc.api import Config

from ..corpus.io import read_docs
from ..errors import Errors
from ..pipeline.span_batch import doc_key
from ..pipeline.span_ner import RobustSpanNER
from .missampling import find_component
from .span_course import SpanCourse

DOCUMENTS = 300


def follow_training(
    config: Config,
    *,
    gold: Path | None = None,
    texts: Sequence[str] = (),
    documents: int = DOCUMENTS,
    component: str | None = None,
    use_gpu: int = -1,
    on_stage: Callable[[int], None] | None = None,
    stdout: IO[str] = sys.stdout,
    stderr: IO[str] = sys.stderr,
) -> SpanCourse:
    """Train as `spacy train` does, and look at the spans before the first epoch and after each,
    the last of which may have ended early.

    config (Config): A complete training config with its paths set, not yet interpolated.
    gold (Optional[Path]): The training corpus with all entities.
    texts (Sequence[str]): Strings whose mentions are to be followed.
    documents (int): How many training documents to follow, at even distances in the corpus;
        beside them, those in which the texts are mentioned, as many again at most.
    component (Optional[str]): The component's name; the first of its kind if not given.
    use_gpu (int): The GPU, or -1 for the CPU.
    on_stage (Optional[Callable[[int], None]]): Hears of each completed epoch.
    stdout (IO[str]): Where the training log goes.
    stderr (IO[str]): Where warnings of training go.
    RETURNS (SpanCourse): The stages.
    """
    nlp = init_nlp(config, use_gpu=use_gpu)
    pipe = find_component(nlp, component)
    docs = _choose(_training_docs(nlp), texts, documents)
    course = SpanCourse(nlp, pipe, docs, _gold_of(docs, gold, nlp), texts)
    _record_epochs(nlp, pipe, course, on_stage)
    pipe.sample_observer = course
    try:
        train(nlp, None, use_gpu=use_gpu, stdout=stdout, stderr=stderr)
    finally:
        pipe.sample_observer = None
        del nlp.update
    course.record(course.stages[-1].epochs + 1)
    return course


def _record_epochs(
    nlp: Language,
    pipe: RobustSpanNER,
    course: SpanCourse,
    on_stage: Callable[[int], None] | None,
) -> None:
    """Record a stage before the first update of each epoch. The loop tells no one when an epoch
    ends, and inside of an update the encoder can't be asked.
    """
    update = nlp.update

    def recording_update(examples: Iterable[Example], **options: Any) -> Any:
        epoch = pipe.progress.epoch
        if not course.stages or course.stages[-1].epochs < epoch:
            course.record(epoch)
            if on_stage is not None:
                on_stage(epoch)
        return update(examples, **options)

    nlp.update = recording_update  # type: ignore[method-assign, assignment]


def _training_docs(nlp: Language) -> list[Doc]:
    config = nlp.config.interpolate()
    corpora = Config(registry.resolve({"corpora": config["corpora"]}))
    (corpus,) = resolve_dot_names(corpora, [config["training"]["train_corpus"]])
    return [example.reference for example in corpus(nlp) if len(example.reference)]


def _choose(docs: list[Doc], texts: Sequence[str], limit: int) -> list[Doc]:
    if limit < 1:
        raise ValueError(Errors.R086.format(option="documents", value=limit, minimum=1))
    count = min(limit, len(docs))
    chosen = [docs[i * len(docs) // count] for i in range(count)]
    mentioning = (doc for doc in docs if any(text in doc.text for text in texts))
    unique = {doc_key(doc): doc for doc in (*chosen, *islice(mentioning, limit))}
    for text in texts:
        if not any(text in doc.text for doc in unique.values()):
            raise ValueError(Errors.R222.format(text=text))
    return list(unique.values())


def _gold_of(docs: Sequence[Doc], path: Path | None, nlp: Language) -> list[Doc] | None:
    if path is None:
        return None
    wanted = {doc_key(doc) for doc in docs}
    found = {key: doc for doc in read_docs(path, nlp.vocab) if (key := doc_key(doc)) in wanted}
    for doc in docs:
        if doc_key(doc) not in found:
            raise ValueError(Errors.R223.format(path=path, text=doc.text[:60]))
    return [found[doc_key(doc)] for doc in docs]
