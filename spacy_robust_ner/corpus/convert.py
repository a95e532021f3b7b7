"""Convert annotated corpora of many formats to .spacy, keeping what their annotation means."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import spacy
from spacy.language import Language
from spacy.tokens import Doc

from ..annotation import REJECTED_SPANS_KEY, missing_tokens, set_complete, stated_complete
from ..errors import Errors
from .building import build_doc
from .convert_report import ConvertReport, InputReport
from .formats import find_format, get_format
from .io import DEFAULT_SHARD_SIZE, DocWriter
from .records import BadRecord
from .source import ReadOptions, Source

DEFAULT_LANG = "en"


@dataclass(frozen=True, slots=True)
class CorpusInput:
    """path (Path): A file, or a directory of .spacy files.
    complete (Optional[bool]): What to say of its documents; None keeps what they say themselves.
    """

    path: Path
    complete: bool | None = None


def read_inputs(
    inputs: Iterable[CorpusInput | Path],
    *,
    nlp: Language,
    format: str = "auto",
    options: ReadOptions | None = None,
    report: ConvertReport | None = None,
) -> Iterator[Doc]:
    """Read any convertible inputs, one after the other and a document at a time.

    inputs (Iterable[Union[CorpusInput, Path]]): The inputs.
    nlp (Language): Makes tokens of running text; all documents share its vocab.
    format (str): The inputs' format, or "auto" to find each one's from its content.
    options (Optional[ReadOptions]): How to read them.
    report (Optional[ConvertReport]): Filled while reading.
    YIELDS (Doc): The documents, with states, rejected spans and flags.
    """
    options = options or ReadOptions()
    report = report if report is not None else ConvertReport()
    for each in inputs:
        given = each if isinstance(each, CorpusInput) else CorpusInput(each)
        source = Source(given.path, nlp, options, report.add_input(given.path))
        yield from _read_input(source, format, given.complete)


def convert(
    inputs: Sequence[CorpusInput | Path],
    output: Path,
    *,
    nlp: Language | str = DEFAULT_LANG,
    format: str = "auto",
    options: ReadOptions | None = None,
    shard_size: int = DEFAULT_SHARD_SIZE,
    progress: Callable[[Iterable[Doc]], Iterable[Doc]] | None = None,
) -> ConvertReport:
    """Convert inputs to one corpus.

    inputs (Sequence[Union[CorpusInput, Path]]): The inputs, in the order of the output.
    output (Path): A .spacy file, or a directory for shards.
    nlp (Union[Language, str]): Makes tokens of running text: a pipeline or a language code.
    format (str): The inputs' format, or "auto" to find each one's from its content.
    options (Optional[ReadOptions]): How to read them.
    shard_size (int): Documents a shard.
    progress (Optional[Callable]): Wraps the stream of documents, e.g. in a progress bar.
    RETURNS (ConvertReport): What was found and written.
    """
    given = [each if isinstance(each, CorpusInput) else CorpusInput(each) for each in inputs]
    check_inputs(given, output)
    if shard_size < 1:
        raise ValueError(Errors.R023.format(value=shard_size))
    if format != "auto":
        get_format(format)
    pipeline = blank_pipeline(nlp) if isinstance(nlp, str) else nlp
    options = options or ReadOptions()
    report = ConvertReport(output=str(output))

    def read() -> Iterator[Doc]:
        for each in given:
            source = Source(
                each.path, pipeline, options, report.add_input(each.path), shares_vocab=False
            )
            yield from _read_input(source, format, each.complete)

    docs = iter(progress(read()) if progress else read())
    with DocWriter(output, shard_size=shard_size) as writer:
        more = True
        while more:
            before = writer.count
            # A vocab never forgets a word by itself, and would grow with the corpus.
            with pipeline.memory_zone():
                for doc in islice(docs, shard_size):
                    writer.write(doc)
            more = writer.count - before == shard_size
    return report


def blank_pipeline(lang: str) -> Language:
    """RETURNS (Language): A blank pipeline for its tokenizer."""
    try:
        return spacy.blank(lang)
    except ImportError as error:
        raise ValueError(Errors.R020.format(lang=lang, reason=error)) from error


def check_inputs(inputs: Sequence[CorpusInput], output: Path) -> None:
    """Find what can't work before anything is read.

    inputs (Sequence[CorpusInput]): The inputs.
    output (Path): The corpus to be written.
    """
    if not inputs:
        raise ValueError(Errors.R018)
    flags: dict[Path, bool | None] = {}
    for given in inputs:
        if not given.path.exists():
            raise FileNotFoundError(Errors.R017.format(path=given.path))
        place = given.path.resolve()
        if flags.setdefault(place, given.complete) != given.complete:
            raise ValueError(Errors.R019.format(path=given.path))
        if output.resolve() == place or output.resolve() in place.parents:
            raise ValueError(Errors.R021.format(path=output))


def _read_input(source: Source, format: str, complete: bool | None) -> Iterator[Doc]:
    if not source.path.exists():
        raise FileNotFoundError(Errors.R017.format(path=source.path))
    name = format
    if format == "auto":
        name = find_format(source.path)
        source.report.found.append("format")
    reader = get_format(name).read
    if source.path.is_dir() and name != "docbin":
        raise ValueError(Errors.R022.format(path=source.path, format=name))
    source.report.format = name
    for record in reader(source):
        if isinstance(record, Doc):
            doc: Doc | None = record
        else:
            try:
                doc = build_doc(record, source)
            except BadRecord as error:
                source.leave_out(record.line, str(error))
                continue
        if doc is not None:
            if complete is not None:
                set_complete(doc, complete)
            _count(doc, source.report)
            yield doc


def _count(doc: Doc, report: InputReport) -> None:
    report.documents += 1
    report.tokens += len(doc)
    report.missing_tokens += sum(missing_tokens(doc))
    report.entities.update(ent.label_ for ent in doc.ents)
    if REJECTED_SPANS_KEY in doc.spans:
        report.rejected_spans += len(doc.spans[REJECTED_SPANS_KEY])
    stated = stated_complete(doc)
    if stated is None:
        report.unstated += 1
    elif stated:
        report.complete += 1
    else:
        report.incomplete += 1
