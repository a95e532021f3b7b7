"""How many of the sampled negatives are entities that somebody forgot to label.

The missampling rate (Li et al. 2022, eq. 12) needs the gold annotation of the training corpus, so
it is a study of samplers and not a part of training. `measure_missampling` samples from a trained
or untrained pipeline's scores as training would; `MissamplingObserver` counts while it trains.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import zip_longest

import numpy as np
from numpy.typing import NDArray
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import minibatch
from thinc.api import xp2torch
from torch import Tensor

from ..candidates import BatchAnnotation, CandidateTable
from ..errors import Errors
from ..pipeline.robust_pipe import O_INDEX
from ..pipeline.span_batch import annotate_examples, doc_key, process_before
from ..pipeline.span_ner import RobustSpanNER
from ..span.choosing import choose_spans
from ..span.samplers import (
    AllSampler,
    FractionSampler,
    TopSimilaritySampler,
    UniformSampler,
    WeightedSampler,
)
from ..types import NegativeSampler
from .evaluation import bare_copy
from .missampling_report import DocumentSample, MissamplingReport, SamplerMissampling

Ints = NDArray[np.int64]

# Makes a sampler from a rate and a seed.
SamplerKind = Callable[[float, int], NegativeSampler]
# Makes a sampler for one repetition.
SamplerOfRepetition = Callable[[int], NegativeSampler]

SAMPLERS: Mapping[str, tuple[float | None, SamplerKind]] = {
    "all": (None, lambda rate, seed: AllSampler()),
    "uniform": (0.35, lambda rate, seed: UniformSampler(rate=rate, seed=seed)),
    "weighted": (0.35, lambda rate, seed: WeightedSampler(rate=rate, seed=seed)),
    "weighted-outside": (
        0.35,
        lambda rate, seed: WeightedSampler(rate=rate, seed=seed, outside_in_max=True),
    ),
    "weighted-sparing": (
        0.35,
        lambda rate, seed: WeightedSampler(rate=rate, seed=seed, prefer_hard=False),
    ),
    "top-similarity": (0.05, lambda rate, seed: TopSimilaritySampler(share=rate, seed=seed)),
    "fraction": (0.5, lambda rate, seed: FractionSampler(share=rate, seed=seed)),
}


def find_component(nlp: Language, name: str | None = None, *, path: str = "") -> RobustSpanNER:
    """nlp (Language): The pipeline.
    name (Optional[str]): The component; the first of its kind if not given.
    path (str): What the pipeline is called in the error message.
    RETURNS (RobustSpanNER): The component.
    """
    for own_name, component in nlp.pipeline:
        if isinstance(component, RobustSpanNER) and name in (None, own_name):
            return component
    wanted = "" if name is None else f" with the name '{name}'"
    known = ", ".join(nlp.pipe_names) or "none"
    raise ValueError(Errors.R131.format(path=path or nlp.meta["name"], wanted=wanted, known=known))


def parse_sampler(text: str, *, seed: int = 0) -> dict[str, SamplerOfRepetition]:
    """Read what a user wants to sample with.

    text (str): "uniform", "uniform=0.35" or "uniform=0.1,0.35".
    seed (int): Seed of the first repetition; each further one has the next.
    RETURNS (Dict[str, SamplerOfRepetition]): A sampler for each rate, by "uniform=0.35".
    """
    name, _, rates = text.partition("=")
    if name not in SAMPLERS or (name == "all" and rates):
        raise ValueError(Errors.R133.format(value=text, known=", ".join(SAMPLERS)))
    default, kind = SAMPLERS[name]
    if default is None:
        return {name: partial(_make_sampler, kind, 0.0, seed)}
    try:
        numbers = [float(rate) for rate in rates.split(",")] if rates else [default]
    except ValueError as error:
        raise ValueError(Errors.R133.format(value=text, known=", ".join(SAMPLERS))) from error
    for number in numbers:
        kind(number, seed)
    return {f"{name}={number:g}": partial(_make_sampler, kind, number, seed) for number in numbers}


def _make_sampler(kind: SamplerKind, rate: float, seed: int, repetition: int) -> NegativeSampler:
    return kind(rate, seed + repetition)


@dataclass(frozen=True)
class DocPair:
    """One document of the training corpus.

    masked (Doc): As it is trained on.
    gold (Doc): With all entities.
    """

    masked: Doc
    gold: Doc


def pair_corpora(masked: Iterable[Doc], gold: Iterable[Doc]) -> Iterator[DocPair]:
    """Check that two corpora are the same documents.

    masked (Iterable[Doc]): Documents as they are trained on.
    gold (Iterable[Doc]): The same with all entities.
    YIELDS (DocPair): The documents that have tokens.
    """
    for number, (one, other) in enumerate(zip_longest(masked, gold)):
        if one is None or other is None:
            reason = f"the {'masked' if one is None else 'gold'} corpus ends before it"
            raise ValueError(Errors.R130.format(number=number, reason=reason))
        if [token.text for token in one] != [token.text for token in other]:
            reason = f"the tokens of {one.text[:40]!r} and {other.text[:40]!r} are not the same"
            raise ValueError(Errors.R130.format(number=number, reason=reason))
        if len(one):
            yield DocPair(one, other)


def measure_missampling(
    nlp: Language,
    pairs: Iterable[DocPair],
    *,
    samplers: Mapping[str, SamplerOfRepetition] | None = None,
    own: bool = True,
    repetitions: int = 10,
    batch_size: int = 16,
    epoch: int | None = None,
    component: str | None = None,
) -> MissamplingReport:
    """Sample negatives of a whole training corpus, as training would with the present weights.

    The negatives are all that the component would learn from: also spans that are vouched for, if
    it uses them all, which only complete documents, rejected spans and the setting `flat` give.

    nlp (Language): A pipeline with robust_span_ner, trained or initialized.
    pairs (Iterable[DocPair]): From `pair_corpora`.
    samplers (Optional[Mapping[str, SamplerOfRepetition]]): Samplers by name, as `parse_sampler`
        makes them.
    own (bool): Measure the component's own sampler as well.
    repetitions (int): How often to sample the corpus.
    batch_size (int): Documents a batch, which matters to samplers that choose by batch.
    epoch (Optional[int]): Completed epochs, which set the weighted sampler's temperature; as
        saved with the component if not given.
    component (Optional[str]): The component's name; the first of its kind if not given.
    RETURNS (MissamplingReport): Rates of each sampler, over all and by length.
    """
    for option, value in (("repetitions", repetitions), ("batch_size", batch_size)):
        if value < 1:
            raise ValueError(Errors.R086.format(option=option, value=value, minimum=1))
    pipe = find_component(nlp, component)
    makers = dict(samplers or {})
    if own:
        makers = {f"own ({type(pipe.sampler).__name__})": lambda _: pipe.sampler, **makers}
    made = {name: [make(i) for i in range(repetitions)] for name, make in makers.items()}
    epoch = pipe.progress.epoch if epoch is None else epoch
    state = pipe.sampler.get_state()
    samples: dict[str, list[DocumentSample]] = {name: [] for name in made}
    report = MissamplingReport(epoch=epoch, max_epochs=pipe.max_epochs)
    try:
        for batch in minibatch(pairs, batch_size):
            prepared = _PreparedBatch(nlp, pipe, batch)
            report.add_batch(
                documents=len(batch),
                entities=prepared.n_entities,
                unlabeled=len(prepared.unlabeled_rows),
                unreachable=prepared.n_unreachable,
            )
            for name, drawn in made.items():
                for repetition, sampler in enumerate(drawn):
                    samples[name] += prepared.sample(sampler, epoch, repetition)
    finally:
        pipe.sampler.set_state(state)
    for name, drawn in made.items():
        rate = getattr(drawn[0], "rate", None)
        report.samplers.append(SamplerMissampling.from_samples(name, rate, samples[name]))
    return report


class _PreparedBatch:
    """What all samplers and repetitions share."""

    def __init__(self, nlp: Language, pipe: RobustSpanNER, batch: Sequence[DocPair]) -> None:
        self.pipe = pipe
        bare = [bare_copy(pair.masked, nlp) for pair in batch]
        docs = process_before(nlp, pipe.name, [bare_copy(pair.masked, nlp) for pair in batch])
        self.table = CandidateTable([len(doc) for doc in docs], max_width=pipe.max_width)
        self.tokens = xp2torch(pipe.model.ops.flatten(pipe.model.predict(docs)))
        self.keys = [doc_key(doc) for doc in docs]
        self.annotation = annotate_examples(
            [Example(doc, pair.masked) for doc, pair in zip(bare, batch, strict=True)],
            self.table,
            columns={label: i for i, label in enumerate(pipe.labels, O_INDEX + 1)},
            read_targets=pipe.read_targets,
            flat=pipe.flat,
        )
        in_pool = _in_pool(self.table, self.annotation)
        self.pool_sizes = np.bincount(
            self.table.spans_at(np.flatnonzero(in_pool)).doc_index, minlength=len(docs)
        )
        gold = [(i, ent.start, ent.end) for i, pair in enumerate(batch) for ent in pair.gold.ents]
        labeled = {
            (i, ent.start, ent.end)
            for i, pair in enumerate(batch)
            for ent in pair.masked.ents
            if ent.label_ in pipe.labels
        }
        hidden = np.array([span for span in gold if span not in labeled], dtype=np.int64)
        rows = self.table.rows_of(*hidden.reshape(-1, 3).T)
        rows = np.unique(rows[rows >= 0])
        self.n_entities = len(gold)
        self.unlabeled_rows: Ints = rows[in_pool[rows]]
        self.n_unreachable = len(hidden) - len(self.unlabeled_rows)

    def sample(
        self, sampler: NegativeSampler, epoch: int, repetition: int
    ) -> Iterator[DocumentSample]:
        """YIELDS (DocumentSample): What was drawn from each document."""
        pipe = self.pipe
        chosen = choose_spans(
            pipe.head,
            self.tokens,
            self.table,
            self.annotation,
            sampler,
            budget=pipe.model.attrs["chunk_size"],
            o_index=O_INDEX,
            epoch=epoch,
            max_epochs=pipe.max_epochs,
            doc_keys=self.keys,
            use_all_true_negatives=pipe.use_all_true_negatives,
        ).negatives
        rows = chosen.rows.cpu().numpy()
        missed = rows[np.isin(rows, self.unlabeled_rows)]
        count = partial(_by_document, self.table)
        columns = zip(
            self.table.lengths.tolist(),
            count(rows),
            count(missed),
            self.pool_sizes.tolist(),
            count(self.unlabeled_rows),
            strict=True,
        )
        for length, negatives, missampled, pool, unlabeled in columns:
            yield DocumentSample(repetition, length, negatives, missampled, pool, unlabeled)


def _in_pool(table: CandidateTable, annotation: BatchAnnotation) -> NDArray[np.bool_]:
    """RETURNS (NDArray): Which candidates could become negatives. Shape: (candidates,)."""
    spans = table.spans()
    return ~annotation.is_positive(spans) & ~annotation.is_unknown(spans)


def _by_document(table: CandidateTable, rows: Ints) -> list[int]:
    counts: list[int] = np.bincount(
        table.spans_at(rows).doc_index, minlength=len(table.lengths)
    ).tolist()
    return counts


@dataclass
class EpochMissampling:
    """What was sampled in one epoch of training.

    epoch (int): Completed epochs before it.
    negatives (int): Sampled negatives.
    missampled (int): How many of them are gold entities.
    """

    epoch: int
    negatives: int = 0
    missampled: int = 0

    @property
    def rate(self) -> float:
        """RETURNS (float): The missampling rate; 0 if nothing was sampled."""
        return self.missampled / self.negatives if self.negatives else 0.0


@dataclass
class MissamplingObserver:
    """Counts missampling while a component trains: set it as `sample_observer`, or call `watch`.

    Labeled spans are never sampled, so every sampled gold entity is an unlabeled one. Documents
    are recognized by their words; those that the gold corpus lacks are counted and left out.

    gold_docs (Iterable[Doc]): The training documents with all entities.
    epoch (Callable[[], int]): Tells the current epoch.
    """

    gold_docs: Iterable[Doc]
    epoch: Callable[[], int]
    epochs: dict[int, EpochMissampling] = field(default_factory=dict, init=False)
    documents_without_gold: int = field(default=0, init=False)
    _gold: dict[int, set[tuple[int, int]]] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        for doc in self.gold_docs:
            self._gold.setdefault(doc_key(doc), set()).update(
                (ent.start, ent.end) for ent in doc.ents
            )

    @classmethod
    def watch(cls, component: RobustSpanNER, gold_docs: Iterable[Doc]) -> "MissamplingObserver":
        """Set an observer on a component.

        component (RobustSpanNER): The component.
        gold_docs (Iterable[Doc]): The training documents with all entities.
        RETURNS (MissamplingObserver): The observer, which fills while the component trains.
        """
        observer = cls(gold_docs, lambda: component.progress.epoch)
        component.sample_observer = observer
        return observer

    def __call__(
        self, doc_keys: Sequence[int], doc_index: Tensor, starts: Tensor, ends: Tensor
    ) -> None:
        """Count the negatives of a batch; see SampleObserver."""
        epoch = self.epoch()
        counts = self.epochs.setdefault(epoch, EpochMissampling(epoch))
        gold = [self._gold.get(key) for key in doc_keys]
        self.documents_without_gold += sum(entities is None for entities in gold)
        for index, start, end in zip(
            doc_index.tolist(), starts.tolist(), ends.tolist(), strict=True
        ):
            entities = gold[index]
            if entities is not None:
                counts.negatives += 1
                counts.missampled += (start, end) in entities
