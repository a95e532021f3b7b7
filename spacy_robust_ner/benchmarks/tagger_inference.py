"""What decoding costs within inference, and inference beside that of `ner`."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from spacy.tokens import Doc

from ..pipeline.span_batch import run_component
from ..pipeline.token_tagger import RobustTokenTagger
from ..tagging.padding import pad
from ..tagging.predict import predict_segments
from ..tagging.viterbi import scheme_chain, viterbi
from .pipelines import process, train_briefly
from .ratio import Ratio
from .synthetic import bare_copy, make_docs
from .tagger_training import OURS, RIVAL, RIVAL_LIMIT, get_tagger, make_tagger_pipeline
from .timing import cpu_seconds

VITERBI_LIMIT = 0.10
# Sentences of a batch are seldom equally long, and the loops are as long as the longest.
_LENGTHS = (5, 15, 25, 35, 45)


def measure_inference(
    encoder: Path | None,
    *,
    documents: int | None = None,
    train_steps: int = 40,
    repetitions: int = 7,
) -> list[Ratio]:
    """Time `nlp.pipe` of our pipeline and of one with `ner`, and the decoding within ours. Both
    have first learned made-up names for a few steps.

    encoder (Optional[Path]): A directory or name that transformers can load; None for the CNN.
    documents (Optional[int]): Documents to process; one batch of the recipe if not given.
    train_steps (int): Batches to learn from before.
    repetitions (int): Runs of each; the median counts.
    RETURNS (List[Ratio]): The figures.
    """
    jobs: dict[str, Callable[[], object]] = {}
    for method in (OURS, RIVAL):
        nlp = make_tagger_pipeline(method, encoder)
        train_briefly(nlp, steps=train_steps)
        count = max(1, (documents or nlp.batch_size) // len(_LENGTHS))
        docs = [
            doc
            for length in _LENGTHS
            for doc in make_docs(nlp.vocab, count=count, length=length, seed=length)
        ]
        jobs[method] = partial(process, nlp, docs)
        if method == OURS:
            encoded = run_component(nlp.pipeline[0][1], [bare_copy(doc) for doc in docs])
            jobs |= decoding_jobs(get_tagger(nlp), encoded)
    seconds = cpu_seconds(jobs, repetitions=repetitions)
    name = "cnn" if encoder is None else "trf"
    whole = f"inference of {OURS}"
    return [
        Ratio(
            "inference", name, "Viterbi", seconds["viterbi"], whole, seconds[OURS], VITERBI_LIMIT
        ),
        Ratio(
            "inference",
            name,
            "Viterbi, entities and their probabilities",
            seconds["segments"],
            whole,
            seconds[OURS],
        ),
        Ratio(
            "inference",
            name,
            whole,
            seconds[OURS],
            f"inference of {RIVAL}",
            seconds[RIVAL],
            RIVAL_LIMIT,
        ),
    ]


def decoding_jobs(
    tagger: RobustTokenTagger, docs: Sequence[Doc]
) -> dict[str, Callable[[], object]]:
    """tagger (RobustTokenTagger): The component.
    docs (Sequence[Doc]): Documents that its encoder has processed.
    RETURNS (Dict[str, Callable]): Find the best tags of all ("viterbi"), or the entities with
        their probabilities ("segments").
    """
    decisions, lengths = tagger.decisions(docs)
    tag_set, crf = tagger.tag_set, tagger.head.crf
    chain = scheme_chain(tag_set, decisions.device) if crf is None else crf.chain

    def best_tags() -> None:
        viterbi(pad(decisions, lengths), lengths, chain)

    def segments() -> None:
        predict_segments(decisions, lengths, tag_set=tag_set, crf=crf)

    return {"viterbi": best_tags, "segments": segments}
