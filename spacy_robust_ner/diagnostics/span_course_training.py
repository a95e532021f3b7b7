"""Train a pipeline and follow its spans."""

import sys
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import IO, Any

from spacy.language import Language
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
from .span_course import FollowedDoc, SpanCourse

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
    examples = _choose(_training_examples(nlp), texts, documents)
    course = SpanCourse(nlp, pipe, _follow(examples, gold, nlp), texts)
    for text in texts:
        if not course.count_mentions(text):
            raise ValueError(Errors.R222.format(text=text))
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


def _training_examples(nlp: Language) -> list[Example]:
    config = nlp.config.interpolate()
    corpora = Config(registry.resolve({"corpora": config["corpora"]}))
    (corpus,) = resolve_dot_names(corpora, [config["training"]["train_corpus"]])
    return [example for example in corpus(nlp) if len(example.predicted)]


def _choose(examples: list[Example], texts: Sequence[str], limit: int) -> list[Example]:
    if limit < 1:
        raise ValueError(Errors.R086.format(option="documents", value=limit, minimum=1))
    count = min(limit, len(examples))
    chosen = [examples[i * len(examples) // count] for i in range(count)]
    mentioning = (eg for eg in examples if any(text in eg.predicted.text for text in texts))
    # The same words come to the same number, whichever document they are from.
    unique = {doc_key(eg.predicted): eg for eg in (*chosen, *islice(mentioning, limit))}
    return list(unique.values())


def _follow(examples: Sequence[Example], path: Path | None, nlp: Language) -> list[FollowedDoc]:
    if path is None:
        return [FollowedDoc(eg.predicted, _entities(eg)) for eg in examples]
    wanted = {doc_key(example.reference) for example in examples}
    found = {key: doc for doc in read_docs(path, nlp.vocab) if (key := doc_key(doc)) in wanted}
    followed = []
    for example in examples:
        gold = found.get(doc_key(example.reference))
        if gold is None:
            raise ValueError(Errors.R223.format(path=path, text=example.reference.text[:60]))
        known = _entities(Example(example.predicted, gold))
        followed.append(FollowedDoc(example.predicted, _entities(example), known))
    return followed


def _entities(example: Example) -> list[tuple[int, int]]:
    """RETURNS (List[Tuple[int, int]]): The annotated entities, in tokens of the pipeline."""
    spans = example.get_aligned_spans_y2x(example.reference.ents)
    return [(span.start, span.end) for span in spans]
