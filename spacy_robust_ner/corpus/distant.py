"""Distant supervision: annotate a corpus with the entries of dictionaries.

The annotation is incomplete by nature, and every document says so by its flag. What the input knew
about entities is used to measure the matches, never written.
"""

import multiprocessing
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

from spacy.tokens import Doc, DocBin, Span

from ..annotation import pack_user_data, set_complete
from ..errors import Errors
from .agreement import Agreement, GoldDocument, Mention, dense_offsets, dense_words
from .convert import CorpusInput, blank_pipeline, check_inputs, read_inputs
from .convert_report import ConvertReport
from .dictionaries import BadLine, DictionarySource, read_entries
from .io import DEFAULT_SHARD_SIZE, DocWriter
from .matching import (
    TOKENS,
    DictionaryMatcher,
    DictionaryReport,
    MatchCounts,
    MatchSettings,
    check_choice,
    check_minimum,
)
from .source import ReadOptions
from .units import Text, Unit, detect_tokens, pair_with_gold, read_units

REST = ("outside", "missing")

_SAMPLE_SIZE = 200
_CHUNK_SIZE = 2500
_MAX_EXAMPLES = 20


@dataclass
class AnnotateReport:
    """What the dictionaries found in a corpus.

    output (Optional[str]): The corpus that was written.
    documents (int): Documents of the input.
    tokens (int): Their tokens.
    token_unit (str): "words" or "characters".
    matches (Dict[str, int]): Entities by label.
    contained (int): Matches within a longer one, or on the same tokens from a later dictionary.
    crossing (int): Matches left out because they cross one that stayed.
    wrong_case (int): Matches refused by the smart reading of case.
    dictionary (DictionaryReport): What became of the entries before matching.
    entries_used (int): Entries with at least one entity.
    entries_overruled (int): Entries that were found, but never without a better match.
    entries_never_found (int): Entries that do not occur in the text.
    never_found_examples (List[str]): Some of these.
    bad_dictionary (int): Dictionary lines that were left out.
    bad_input (int): Malformed parts of the input that were left out.
    bad_lines (List[BadLine]): Lines of dictionaries, and the first of the input, left out.
    scores (Optional[Dict[str, Any]]): Precision, recall and F1 against the gold.
    """

    output: str | None = None
    documents: int = 0
    tokens: int = 0
    token_unit: str = "words"
    matches: dict[str, int] = field(default_factory=dict)
    contained: int = 0
    crossing: int = 0
    wrong_case: int = 0
    dictionary: DictionaryReport = field(default_factory=DictionaryReport)
    entries_used: int = 0
    entries_overruled: int = 0
    entries_never_found: int = 0
    never_found_examples: list[str] = field(default_factory=list)
    bad_dictionary: int = 0
    bad_input: int = 0
    bad_lines: list[BadLine] = field(default_factory=list)
    scores: dict[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        """RETURNS (Dict[str, Any]): The report as JSON-serializable data."""
        return asdict(self)


class Annotator:
    """Turn texts into documents whose entities are dictionary matches.

    matcher (DictionaryMatcher): Finds the entries.
    rest (str): What tokens outside of matches become: "outside" or "missing".
    """

    def __init__(self, matcher: DictionaryMatcher, *, rest: str = "outside") -> None:
        check_choice(rest, "--rest", REST)
        self.matcher = matcher
        self.rest = rest

    def annotate(self, text: Text, counts: MatchCounts) -> Doc:
        """text (Text): Raw or tokenised text.
        counts (MatchCounts): Is added to.
        RETURNS (Doc): A new document with the matches as its entities, flagged incomplete.
        """
        if isinstance(text, str):
            doc = self.matcher.make_doc(text)
        else:
            words, spaces, sent_starts = text
            vocab = self.matcher.nlp.vocab
            doc = Doc(vocab, words=words, spaces=spaces, sent_starts=sent_starts)
        found = self.matcher.find(doc, counts)
        doc.set_ents([Span(doc, *span) for span in found], default=self.rest)
        set_complete(doc, False)
        return doc


def annotate_corpus(
    inputs: Sequence[Path],
    dictionaries: Iterable[DictionarySource],
    *,
    output: Path | None = None,
    lang: str = "en",
    format: str = "auto",
    settings: MatchSettings | None = None,
    tokens: str = "auto",
    rest: str = "outside",
    evaluate: bool = False,
    gold: Path | None = None,
    processes: int = 1,
    shard_size: int = DEFAULT_SHARD_SIZE,
    skip_bad: bool = False,
    progress: Callable[[Iterable[Unit]], Iterable[Unit]] | None = None,
) -> AnnotateReport:
    """Annotate raw, tokenised or annotated text with dictionaries.

    inputs (Sequence[Path]): The corpus; see read_units.
    dictionaries (Iterable[DictionarySource]): The dictionaries, in order of priority.
    output (Optional[Path]): Where the annotated corpus goes: a .spacy file, or a directory for
        shards. None to measure only.
    lang (str): Code of the language whose tokenizer is used for names and raw text.
    format (str): The format of the input; see read_units.
    settings (Optional[MatchSettings]): How to match. Its tokens give way to the next setting.
    tokens (str): "words", "characters", or "auto" to find out from the first documents.
    rest (str): What tokens outside of matches become: "outside" or "missing".
    evaluate (bool): Measure the matches against the annotation of the input.
    gold (Optional[Path]): Measure them against this corpus instead.
    processes (int): Processes that tokenize, match and serialize. The result is the same.
    shard_size (int): Documents a shard.
    skip_bad (bool): Leave out malformed lines of dictionaries and inputs, and count them.
    progress (Optional[Callable]): Wraps the stream of documents, to show how far it is.
    RETURNS (AnnotateReport): The counts, and the scores if there is gold.
    """
    check_choice(tokens, "--tokens", ("auto", *TOKENS))
    check_choice(rest, "--rest", REST)
    check_minimum(processes, "--processes", 1)
    if evaluate and gold is not None:
        raise ValueError(Errors.R090)
    if output is None and gold is None and not evaluate:
        raise ValueError(Errors.R089)
    if output is not None:
        read = [*inputs, gold] if gold else inputs
        check_inputs([CorpusInput(path) for path in read], output)
    nlp = blank_pipeline(lang)
    read_report = ConvertReport()
    units = read_units(
        inputs,
        nlp=nlp,
        format=format,
        own_gold=evaluate,
        options=ReadOptions(skip_bad=skip_bad),
        report=read_report,
    )
    if gold is not None:
        units = pair_with_gold(units, read_inputs([gold], nlp=nlp))
    sample = list(islice(units, _SAMPLE_SIZE))
    units = chain(sample, units)
    if tokens == "auto":
        tokens = detect_tokens((unit.text for unit in sample), nlp)
    settings = replace(settings or MatchSettings(), tokens=tokens)
    bad_lines: list[BadLine] | None = [] if skip_bad else None
    entries = read_entries(dictionaries, bad_lines=bad_lines)
    annotator = Annotator(
        DictionaryMatcher(lang, entries, settings, bad_lines=bad_lines), rest=rest
    )
    report = annotate_units(
        progress(units) if progress else units,
        annotator,
        output=output,
        evaluate=evaluate or gold is not None,
        processes=processes,
        shard_size=shard_size,
    )
    report.bad_lines = bad_lines or []
    report.bad_dictionary = len(report.bad_lines)
    for each in read_report.inputs:
        report.bad_input += each.skipped.count
        report.bad_lines += [BadLine(each.path, n.line, n.reason) for n in each.skipped.listed]
    return report


def annotate_units(
    units: Iterable[Unit],
    annotator: Annotator,
    *,
    output: Path | None = None,
    evaluate: bool = False,
    processes: int = 1,
    shard_size: int = DEFAULT_SHARD_SIZE,
) -> AnnotateReport:
    """Annotate a stream of documents; see annotate_corpus for the arguments.

    RETURNS (AnnotateReport): The counts, and the scores if there is gold.
    """
    counts = MatchCounts()
    agreement = Agreement()
    report = AnnotateReport(output=None if output is None else str(output))
    chunks = _chunks(units, shard_size)
    job = _Job(annotator, evaluate=evaluate, serialize=output is not None)
    with ExitStack() as stack:
        writer = None
        if output is not None:
            writer = _MergingWriter(output, shard_size=shard_size)
            stack.enter_context(writer)
        for golds, result in _run(chunks, job, processes):
            report.documents += len(golds)
            report.tokens += result.tokens
            counts.add(result.counts)
            if writer is not None:
                writer.merge(result.docs)
            for mentions, gold in zip(result.mentions, golds, strict=False):
                if gold is not None:
                    agreement.add(mentions, gold)
        if evaluate and not agreement.documents:
            raise ValueError(Errors.R085)
    _fill(report, annotator.matcher, counts)
    report.scores = agreement.to_dict() if evaluate else None
    return report


class _Result(NamedTuple):
    tokens: int
    counts: MatchCounts
    docs: bytes
    mentions: list[list[Mention]]


class _Job:
    """What is done to a chunk, in this or in another process. Strings and word lists go there and
    a serialized DocBin comes back, since making a DocBin takes longer than all the rest."""

    def __init__(self, annotator: Annotator, *, evaluate: bool, serialize: bool) -> None:
        self.annotator = annotator
        self.evaluate = evaluate
        self.serialize = serialize

    def __call__(self, texts: Iterable[Text]) -> _Result:
        # The words of a chunk are forgotten with it; the vocabulary would grow with the corpus.
        with self.annotator.matcher.nlp.memory_zone():
            return self._annotate(texts)

    def _annotate(self, texts: Iterable[Text]) -> _Result:
        counts = MatchCounts()
        docs = DocBin(store_user_data=False)
        mentions: list[list[Mention]] = []
        tokens = 0
        for text in texts:
            doc = self.annotator.annotate(text, counts)
            tokens += len(doc)
            if self.serialize:
                docs.add(doc)
                docs.user_data.append(pack_user_data(doc))
            if self.evaluate:
                offsets = dense_offsets(dense_words(token.text for token in doc))
                mentions.append([(offsets[e.start], offsets[e.end], e.label_) for e in doc.ents])
        # Only now, so that the DocBin takes the packed user data and packs none itself.
        docs.store_user_data = True
        return _Result(tokens, counts, docs.to_bytes() if self.serialize else b"", mentions)


class _MergingWriter(DocWriter):
    """Writes documents that are serialized already, without making Docs of them."""

    def merge(self, docs: bytes) -> None:
        """docs (bytes): A DocBin with no more documents than fit into the current shard."""
        chunk = self._new_shard().from_bytes(docs)
        self._shard.merge(chunk)
        self.count += len(chunk)
        if not self._single and len(self._shard) >= self.shard_size:
            self._flush()


def _chunks(units: Iterable[Unit], shard_size: int) -> Iterator[list[Unit]]:
    """Cut the stream so that a chunk never goes on in the next shard."""
    stream = iter(units)
    left = shard_size
    while chunk := list(islice(stream, min(_CHUNK_SIZE, left))):
        left = left - len(chunk) or shard_size
        yield chunk


def _run(
    chunks: Iterable[list[Unit]], job: _Job, processes: int
) -> Iterator[tuple[list[GoldDocument | None], _Result]]:
    if processes == 1:
        for chunk in chunks:
            yield [unit.gold for unit in chunk], job([unit.text for unit in chunk])
        return
    waiting: deque[tuple[list[GoldDocument | None], Future[_Result]]] = deque()
    context = multiprocessing.get_context()
    with ProcessPoolExecutor(
        processes, mp_context=context, initializer=_set_worker_job, initargs=(job,)
    ) as pool:
        for chunk in chunks:
            future = pool.submit(_run_worker_job, [unit.text for unit in chunk])
            waiting.append(([unit.gold for unit in chunk], future))
            # Without a limit the whole corpus would wait in memory.
            if len(waiting) > 2 * processes:
                golds, done = waiting.popleft()
                yield golds, done.result()
        for golds, done in waiting:
            yield golds, done.result()


# One worker process has one job; sending the matcher with each chunk would cost more than matching.
_worker_job: _Job | None = None


def _set_worker_job(job: _Job) -> None:
    global _worker_job
    _worker_job = job


def _run_worker_job(texts: list[Text]) -> _Result:
    assert _worker_job is not None
    return _worker_job(texts)


def _fill(report: AnnotateReport, matcher: DictionaryMatcher, counts: MatchCounts) -> None:
    never_found = sorted(matcher.matchable() - counts.found)
    report.token_unit = matcher.settings.tokens
    report.matches = dict(Counter(counts.labels).most_common())
    report.contained = counts.contained
    report.crossing = counts.crossing
    report.wrong_case = counts.wrong_case
    report.dictionary = matcher.report
    report.entries_used = len(counts.used)
    report.entries_overruled = len(counts.found - counts.used)
    report.entries_never_found = len(never_found)
    report.never_found_examples = [matcher.entries[i].text for i in never_found[:_MAX_EXAMPLES]]
