"""Mark phrases that may be entities of any type, for the fuzzy CRF (Shang et al. 2018).

The phrases are a span group of the documents. Entities, flags and all else stay as they are.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

from spacy.tokens import Doc, Span
from tqdm import tqdm

from ..annotation import PHRASES_KEY
from .convert import CorpusInput, blank_pipeline, check_inputs
from .dictionaries import BadLine, DictionarySource, read_entries
from .io import DEFAULT_SHARD_SIZE, DocWriter, docbin_paths, read_docs
from .matching import (
    TOKENS,
    DictionaryMatcher,
    DictionaryReport,
    MatchCounts,
    MatchSettings,
    check_choice,
)
from .units import TokenisedText, detect_tokens

_SAMPLE_SIZE = 200


@dataclass
class PhraseReport:
    """What became of a list of phrases.

    output (str): The corpus that was written.
    key (str): The span group.
    documents (int): Documents of the corpus.
    documents_with_phrases (int): Those with at least one.
    replaced (int): Documents that had such a group before; it is gone.
    tokens (int): Tokens of the corpus.
    tokens_in_phrases (int): Those in a phrase.
    outside_in_phrases (int): Those of them that are no part of an entity, and so become open.
    phrases (int): Phrases that were marked.
    contained (int): Matches within a longer one.
    crossing (int): Matches left out because they cross one that stayed.
    wrong_case (int): Matches refused by the smart reading of case.
    entries (DictionaryReport): What became of the entries before matching.
    entries_never_found (int): Entries that do not occur in the text.
    bad_lines (List[BadLine]): Lines of the lists that were left out.
    """

    output: str
    key: str
    documents: int = 0
    documents_with_phrases: int = 0
    replaced: int = 0
    tokens: int = 0
    tokens_in_phrases: int = 0
    outside_in_phrases: int = 0
    phrases: int = 0
    contained: int = 0
    crossing: int = 0
    wrong_case: int = 0
    entries: DictionaryReport = field(default_factory=DictionaryReport)
    entries_never_found: int = 0
    bad_lines: list[BadLine] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """RETURNS (Dict[str, Any]): The report as JSON-serializable data."""
        return asdict(self)


def mark_phrases(
    source: Path,
    target: Path,
    lists: Iterable[DictionarySource],
    *,
    key: str = PHRASES_KEY,
    lang: str = "en",
    settings: MatchSettings | None = None,
    tokens: str = "auto",
    shard_size: int = DEFAULT_SHARD_SIZE,
    skip_bad: bool = False,
    show_progress: bool = False,
) -> PhraseReport:
    """Copy a corpus, with the phrases of lists as a span group. Of overlapping phrases the longest
    stays, then the one that starts first.

    source (Path): The corpus.
    target (Path): Where the copy goes: a .spacy file, or a directory for shards.
    lists (Iterable[DictionarySource]): The phrases, in any format of a dictionary. Their labels do
        not count.
    key (str): The span group.
    lang (str): Code of the language whose tokenizer splits phrases into words.
    settings (Optional[MatchSettings]): How to match. Its tokens give way to the next setting.
    tokens (str): "words", "characters", or "auto" to find out from the first documents.
    shard_size (int): Documents a shard.
    skip_bad (bool): Leave out malformed lines of the lists, and count them.
    show_progress (bool): Draw a progress bar.
    RETURNS (PhraseReport): The counts.
    """
    check_choice(tokens, "--tokens", ("auto", *TOKENS))
    check_inputs([CorpusInput(source)], target)
    bad_lines: list[BadLine] | None = [] if skip_bad else None
    # Lists of phrases have no labels, and the formats of dictionaries want one.
    labeled = (replace(each, label=each.label or key) for each in lists)
    entries = read_entries(labeled, bad_lines=bad_lines)
    if tokens == "auto":
        nlp = blank_pipeline(lang)
        sample = islice(read_docs(source, nlp.vocab), _SAMPLE_SIZE)
        tokens = detect_tokens((TokenisedText.from_doc(doc) for doc in sample), nlp)
    settings = replace(settings or MatchSettings(), tokens=tokens)
    matcher = DictionaryMatcher(lang, entries, settings, bad_lines=bad_lines)
    counts = MatchCounts()
    report = PhraseReport(str(target), key, entries=matcher.report, bad_lines=bad_lines or [])
    bar = tqdm(desc="Marking phrases", unit=" docs", disable=not show_progress, leave=False)
    with DocWriter(target, shard_size=shard_size) as writer, bar:
        for file in docbin_paths(source):
            # The words of a shard are forgotten with it; the vocabulary would grow with the corpus.
            with matcher.nlp.memory_zone():
                for doc in read_docs(file, matcher.nlp.vocab):
                    _mark(doc, matcher, counts, report)
                    writer.write(doc)
                    bar.update()
    report.phrases = counts.labels.total()
    report.contained = counts.contained
    report.crossing = counts.crossing
    report.wrong_case = counts.wrong_case
    report.entries_never_found = len(matcher.matchable() - counts.found)
    return report


def _mark(doc: Doc, matcher: DictionaryMatcher, counts: MatchCounts, report: PhraseReport) -> None:
    found = [Span(doc, match.start, match.end) for match in matcher.find(doc, counts)]
    report.documents += 1
    report.documents_with_phrases += bool(found)
    report.replaced += report.key in doc.spans
    report.tokens += len(doc)
    for span in found:
        report.tokens_in_phrases += len(span)
        report.outside_in_phrases += sum(not token.ent_type for token in span)
    # Also where there is none: an empty group says that somebody looked.
    doc.spans[report.key] = found
