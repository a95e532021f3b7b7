"""Make unlabeled entities: take some of the annotation of a well annotated corpus away.

The masked corpus is for training. What was taken away goes to other files and never into it: the
gold corpus, parallel to it document by document, and a listing of the dropped entities.
"""

import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, TextIO, get_args

from spacy.tokens import Doc, Span

from ..annotation import COMPLETE_EXTENSION, PHRASES_KEY, REJECTED_SPANS_KEY, set_complete
from ..errors import Errors
from .doc_stream import stream_docs
from .draws import (
    Thresholds,
    draw_for_position,
    draw_for_surface,
    thresholds_for_probabilities,
    thresholds_for_shares,
)
from .io import DEFAULT_SHARD_SIZE, DocWriter

MaskedAs = Literal["outside", "missing"]
Draw = Callable[[int, Span], int]

_FLAG_KEY = ("._.", COMPLETE_EXTENSION, None, None)


@dataclass
class LabelCount:
    entities: int = 0
    masked: int = 0

    @property
    def share(self) -> float:
        """RETURNS (float): The masked share."""
        return self.masked / self.entities if self.entities else 0.0


@dataclass
class MaskReport:
    """What masking did to a corpus. Span groups and user data are counted by name, with the number
    of documents that lost them."""

    probability: float
    label_probabilities: dict[str, float]
    seed: int
    by_surface: bool
    exact: bool
    masked_as: MaskedAs
    documents: int = 0
    documents_masked: int = 0
    tokens: int = 0
    labels: dict[str, LabelCount] = field(default_factory=dict)
    removed_span_groups: dict[str, int] = field(default_factory=dict)
    removed_user_data: dict[str, int] = field(default_factory=dict)

    @property
    def entities(self) -> int:
        """RETURNS (int): The entities of the gold corpus."""
        return sum(count.entities for count in self.labels.values())

    @property
    def masked(self) -> int:
        """RETURNS (int): The entities that are masked."""
        return sum(count.masked for count in self.labels.values())

    @property
    def share(self) -> float:
        """RETURNS (float): The masked share of the entities."""
        return self.masked / self.entities if self.entities else 0.0

    def as_dict(self) -> dict[str, Any]:
        """RETURNS (Dict[str, Any]): JSON-serializable, with totals and shares."""
        totals = {"entities": self.entities, "masked": self.masked, "share": self.share}
        labels = {
            label: {**asdict(count), "share": count.share}
            for label, count in sorted(self.labels.items())
        }
        return {**asdict(self), **totals, "labels": labels}


def mask_corpus(
    source: Path,
    target: Path,
    gold: Path,
    dropped: Path,
    *,
    probability: float,
    label_probabilities: Mapping[str, float] | None = None,
    seed: int = 0,
    by_surface: bool = False,
    case_sensitive: bool = False,
    exact: bool = False,
    masked_as: MaskedAs = "outside",
    keep_flags: bool = False,
    rejected_spans_key: str = REJECTED_SPANS_KEY,
    shard_size: int = DEFAULT_SHARD_SIZE,
    show_progress: bool = False,
) -> MaskReport:
    """Mask entities of a corpus. With the same seed, what is masked at one probability is masked
    at every higher one as well.

    source (Path): The annotated corpus.
    target (Path): Where the masked corpus goes.
    gold (Path): Where the documents go as they were, in the same order.
    dropped (Path): Where the masked entities are listed, one JSON object a line.
    probability (float): The chance of an entity to be masked.
    label_probabilities (Optional[Mapping[str, float]]): The same for single labels.
    seed (int): The seed.
    by_surface (bool): Decide once for all mentions of a string, as if a dictionary lacked it.
    case_sensitive (bool): Whether mentions that differ in case are different strings.
    exact (bool): Take the probabilities as shares to be met exactly (by surface form: as nearly
        as whole forms allow). Reads the corpus twice and keeps 8 bytes an entity.
    masked_as (MaskedAs): The state that masked tokens get.
    keep_flags (bool): Leave documents that lost nothing as complete as they were. By default
        the whole corpus is marked incomplete, since nobody who gets it can tell them apart. Where
        no probability is above 0, all flags stay.
    rejected_spans_key (str): The only span group that training documents keep, beside phrases
        without labels.
    shard_size (int): Documents a shard, if the outputs are directories.
    show_progress (bool): Draw progress bars.
    RETURNS (MaskReport): The counts.
    """
    shares = dict(label_probabilities or {})
    for name, value in [("masking", probability), *shares.items()]:
        check_probability(name, value)
    check_masked_as(masked_as)
    _check_paths(source, target=target, gold=gold, dropped=dropped)
    draw = make_draw(seed, by_surface=by_surface, case_sensitive=case_sensitive)
    if exact:
        docs = stream_docs(source, description="Counting", show_progress=show_progress)
        thresholds = thresholds_for_shares(_labeled_draws(docs, draw), probability, shares)
    else:
        thresholds = thresholds_for_probabilities(probability, shares)
    keep_flags = keep_flags or not any((probability, *shares.values()))
    report = MaskReport(probability, shares, seed, by_surface, exact, masked_as)
    with ExitStack() as outputs:
        # Left in the reverse order: no training file without the gold that belongs to it.
        masked_corpus = outputs.enter_context(DocWriter(target, shard_size=shard_size))
        gold_corpus = outputs.enter_context(DocWriter(gold, shard_size=shard_size))
        listing = outputs.enter_context(_replaced_file(dropped))
        docs = stream_docs(source, description="Masking", show_progress=show_progress)
        for index, doc in enumerate(docs):
            gold_corpus.write(doc)
            chosen = choose_entities(doc, index, draw, thresholds)
            for entity in chosen:
                listing.write(json.dumps(_listed(index, entity), ensure_ascii=False) + "\n")
            _count(report, doc, chosen, rejected_spans_key)
            mask_doc(doc, chosen, masked_as=masked_as, rejected_spans_key=rejected_spans_key)
            if chosen or not keep_flags:
                set_complete(doc, False)
            masked_corpus.write(doc)
        _check_labels(shares, report)
    return report


def make_draw(seed: int, *, by_surface: bool, case_sensitive: bool = False) -> Draw:
    """RETURNS (Callable[[int, Span], int]): Draws for an entity of a numbered document."""

    def by_position(document: int, entity: Span) -> int:
        return draw_for_position(seed, document, entity)

    def by_form(document: int, entity: Span) -> int:
        return draw_for_surface(seed, entity, case_sensitive=case_sensitive)

    return by_form if by_surface else by_position


def choose_entities(doc: Doc, index: int, draw: Draw, thresholds: Thresholds) -> list[Span]:
    """RETURNS (List[Span]): The entities of a numbered document that are to be masked."""
    return [ent for ent in doc.ents if thresholds.choose(ent.label_, draw(index, ent))]


def mask_doc(
    doc: Doc,
    entities: Sequence[Span],
    *,
    masked_as: MaskedAs = "outside",
    rejected_spans_key: str = REJECTED_SPANS_KEY,
) -> None:
    """Mask entities of a document in place, with everything else that could tell of them: links
    and ids of their tokens, span groups and user data. The completeness flag stays as it is.

    doc (Doc): The document.
    entities (Sequence[Span]): The entities of the document to mask.
    masked_as (MaskedAs): The state of their tokens from now on.
    rejected_spans_key (str): The span group to keep, beside phrases without labels.
    """
    for entity in entities:
        for token in entity:
            # set_ents() resets neither.
            token.ent_kb_id = 0
            token.ent_id = 0
    if entities:
        states: dict[str, list[Span]] = {masked_as: list(entities)}
        doc.set_ents([], default="unmodified", **states)
    for key in _gold_span_groups(doc, rejected_spans_key):
        del doc.spans[key]
    if PHRASES_KEY in doc.spans:
        # Our own have no labels, others' might tell the masked ones.
        doc.spans[PHRASES_KEY] = [Span(doc, s.start, s.end) for s in doc.spans[PHRASES_KEY]]
    for entry in _gold_user_data(doc):
        del doc.user_data[entry]


def _gold_span_groups(doc: Doc, rejected_spans_key: str) -> list[str]:
    return [key for key in doc.spans if key not in (rejected_spans_key, PHRASES_KEY)]


def _gold_user_data(doc: Doc) -> list[Any]:
    return [key for key in doc.user_data if key != _FLAG_KEY]


def _labeled_draws(docs: Iterator[Doc], draw: Draw) -> Iterator[tuple[str, int]]:
    for index, doc in enumerate(docs):
        for ent in doc.ents:
            yield ent.label_, draw(index, ent)


def _listed(index: int, entity: Span) -> dict[str, Any]:
    return {
        "doc": index,
        "start": entity.start,
        "end": entity.end,
        "start_char": entity.start_char,
        "end_char": entity.end_char,
        "text": entity.text,
        "label": entity.label_,
    }


def _count(report: MaskReport, doc: Doc, chosen: Sequence[Span], rejected_spans_key: str) -> None:
    report.documents += 1
    report.documents_masked += bool(chosen)
    report.tokens += len(doc)
    for ent in doc.ents:
        report.labels.setdefault(ent.label_, LabelCount()).entities += 1
    for ent in chosen:
        report.labels[ent.label_].masked += 1
    groups = report.removed_span_groups
    for key in _gold_span_groups(doc, rejected_spans_key):
        groups[key] = groups.get(key, 0) + 1
    # An extension value is kept under ("._.", name, start, end), anything else under its name.
    names = {
        str(key[1]) if isinstance(key, tuple) and len(key) == 4 else str(key)
        for key in _gold_user_data(doc)
    }
    for name in names:
        report.removed_user_data[name] = report.removed_user_data.get(name, 0) + 1


@contextmanager
def _replaced_file(path: Path) -> Iterator[TextIO]:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, staging = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    try:
        with open(handle, "w", encoding="utf8", newline="\n") as file:
            yield file
        os.chmod(staging, 0o644)
        os.replace(staging, path)
    finally:
        Path(staging).unlink(missing_ok=True)


def check_probability(name: str, value: float) -> None:
    """Raise an error if a value, that the name says, is no probability."""
    if not 0 <= value <= 1:
        raise ValueError(Errors.R060.format(name=name, value=value))


def check_masked_as(masked_as: str) -> None:
    """Raise an error for a state that masked tokens can't get."""
    if masked_as not in get_args(MaskedAs):
        raise ValueError(Errors.R062.format(value=masked_as, allowed=", ".join(get_args(MaskedAs))))


def _check_labels(label_probabilities: Mapping[str, float], report: MaskReport) -> None:
    unknown = sorted(set(label_probabilities) - set(report.labels))
    if unknown:
        known = ", ".join(sorted(report.labels)) or "none"
        raise ValueError(Errors.R061.format(labels=", ".join(unknown), known=known))


def _check_paths(source: Path, **outputs: Path) -> None:
    """A corpus directory is read at every depth, so no output may lie in another path."""
    paths = [("source", source), *outputs.items()]
    for i, (name, path) in enumerate(paths):
        for other_name, other in paths[i + 1 :]:
            one, two = path.resolve(), other.resolve()
            if one == two or one in two.parents or two in one.parents:
                raise ValueError(
                    Errors.R063.format(name=name, path=path, other_name=other_name, other=other)
                )
