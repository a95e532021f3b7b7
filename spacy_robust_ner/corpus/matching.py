"""Find the entries of dictionaries in tokenised text.

Names go through spaCy's PhraseMatcher, token patterns through its Matcher. Of matches that overlap,
the longest stays (in tokens), then the one that starts first, then the one whose entry was read
first. A name that stands under several labels has one of them before matching begins:

- ``first``: the label of the entry that was read first;
- ``frequency``: the label with the highest sum of counts (a repeated line counts again), the first
  of equals;
- ``drop``: none, the name is not used.

What counts as the same name depends on how case is read:

- ``exact``: as written;
- ``insensitive``: all spellings are equal;
- ``smart``: as insensitive, but a name in capitals ("US") only matches capitals, and any other name
  with a capital in it ("Reading") does not match text in lower case.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

import spacy
from spacy.attrs import LOWER, ORTH
from spacy.errors import MatchPatternError
from spacy.language import Language
from spacy.matcher import Matcher, PhraseMatcher
from spacy.tokens import Doc
from spacy.util import get_words_and_spaces

from ..errors import Errors
from .dictionaries import BadLine, Entry

CASE = ("exact", "insensitive", "smart")
WHITESPACE = ("normalise", "keep")
TOKENS = ("words", "characters")
AMBIGUOUS = ("first", "drop", "frequency")

_PHRASE = "phrase"
_MAX_EXAMPLES = 20

_ONLY_CAPITALS, _NOT_LOWER, _ANY_CASE = range(3)

Key = tuple[int, ...]


class FoundSpan(NamedTuple):
    """A match: tokens from start to before end, and the label."""

    start: int
    end: int
    label: str


@dataclass(frozen=True)
class MatchSettings:
    """How entries are read and matched; see the module for the meaning of the choices.

    case (str): "exact", "insensitive" or "smart".
    whitespace (str): "normalise" makes a run of whitespace in a name one space; "keep" does not.
    tokens (str): "words", or "characters" for text of which each token is a character.
    ambiguous (str): "first", "drop" or "frequency".
    exclude (FrozenSet[str]): Names that are not used, case-folded.
    min_length (int): Names with fewer characters are not used.
    """

    case: str = "exact"
    whitespace: str = "normalise"
    tokens: str = "words"
    ambiguous: str = "first"
    exclude: frozenset[str] = frozenset()
    min_length: int = 1

    def __post_init__(self) -> None:
        for option, known in (
            ("case", CASE),
            ("whitespace", WHITESPACE),
            ("tokens", TOKENS),
            ("ambiguous", AMBIGUOUS),
        ):
            check_choice(getattr(self, option), f"--{option}", known)
        check_minimum(self.min_length, "--min-length", 1)


@dataclass
class DictionaryReport:
    """What became of the entries.

    read (int): Entries in the files.
    excluded (int): Not used, because they are on the list of exclusions.
    too_short (int): Not used, because they have fewer than min_length characters.
    repeated (int): Entries that an earlier one with the same label makes superfluous.
    token_patterns (int): Entries that are token patterns.
    ambiguous (int): Names under more than one label.
    ambiguous_examples (List[str]): Some of them with their labels, the chosen one first.
    """

    read: int = 0
    excluded: int = 0
    too_short: int = 0
    repeated: int = 0
    token_patterns: int = 0
    ambiguous: int = 0
    ambiguous_examples: list[str] = field(default_factory=list)


@dataclass
class MatchCounts:
    """What happened while matching; counts of several parts of a corpus can be added up.

    labels (Counter): Matches that stayed, by label.
    contained (int): Matches that lie within a longer one, or equal one from an earlier dictionary.
    crossing (int): Matches that overlap one that stayed without lying in it.
    wrong_case (int): Matches that the smart reading of case refused.
    used (Set[int]): Entries with a match that stayed.
    found (Set[int]): Entries with any match.
    """

    labels: Counter[str] = field(default_factory=Counter)
    contained: int = 0
    crossing: int = 0
    wrong_case: int = 0
    used: set[int] = field(default_factory=set)
    found: set[int] = field(default_factory=set)

    def add(self, other: "MatchCounts") -> None:
        """other (MatchCounts): Counts of another part, added to these."""
        self.labels.update(other.labels)
        self.contained += other.contained
        self.crossing += other.crossing
        self.wrong_case += other.wrong_case
        self.used |= other.used
        self.found |= other.found


class DictionaryMatcher:
    """Find dictionary entries in documents. It can be pickled: the copy is built anew.

    lang (str): Code of the language whose tokenizer splits names and raw text into words.
    entries (Iterable[Entry]): The entries, in order of priority.
    settings (MatchSettings): How to read and match them.
    bad_lines (Optional[List[BadLine]]): Collects token patterns that spaCy refuses. None: the first
        one is an error.
    """

    def __init__(
        self,
        lang: str,
        entries: Iterable[Entry],
        settings: MatchSettings | None = None,
        *,
        bad_lines: list[BadLine] | None = None,
    ) -> None:
        self.nlp: Language = spacy.blank(lang)
        self.settings = settings or MatchSettings()
        self.report = DictionaryReport()
        self.entries: list[Entry] = []
        self._attr = ORTH if self.settings.case == "exact" else LOWER
        self._owner: dict[Key, int] = {}
        self._level: dict[Key, int] = {}
        self._phrases = PhraseMatcher(self.nlp.vocab, attr=self._attr)
        self._patterns = Matcher(self.nlp.vocab, validate=True)
        sharing: dict[Key, list[int]] = {}
        for entry in entries:
            self._read(entry, sharing, bad_lines)
        self._settle(sharing)
        # Keys in place of Docs: that is what an unpickled PhraseMatcher is made of, too.
        self._phrases.add(_PHRASE, self._owner)  # type: ignore[arg-type]
        if not self._owner and not len(self._patterns):
            report = self.report
            reason = (
                f"of {report.read} entries {report.excluded} are excluded, {report.too_short} are "
                f"too short and {report.ambiguous} names are ambiguous"
            )
            raise ValueError(Errors.R082.format(reason=reason))

    def __reduce__(self) -> tuple[Any, ...]:
        return DictionaryMatcher, (self.nlp.lang, self.entries, self.settings)

    def make_doc(self, text: str) -> Doc:
        """text (str): Raw text.
        RETURNS (Doc): The text in words or in characters, as the settings say.
        """
        if self.settings.tokens == "words":
            return self.nlp.make_doc(text)
        words = [char for char in text if not char.isspace()]
        words, spaces = get_words_and_spaces(words, text)
        return Doc(self.nlp.vocab, words=words, spaces=spaces)

    def find(self, doc: Doc, counts: MatchCounts) -> list[FoundSpan]:
        """Find the matches that stay after conflicts are resolved.

        doc (Doc): The document, with the vocabulary of this matcher; its entities are not read.
        counts (MatchCounts): Is added to.
        RETURNS (List[FoundSpan]): The matches in order of their starts; none overlap.
        """
        candidates = list(self._candidates(doc, counts))
        if not candidates:
            return []
        candidates.sort(key=lambda c: (c[0] - c[1], c[0], c[2]))
        taken: dict[int, int] = {}
        kept: list[FoundSpan] = []
        for start, end, index in candidates:
            owners = {taken.get(i) for i in range(start, end)}
            if owners == {None}:
                label = self.entries[index].label
                taken.update((i, len(kept)) for i in range(start, end))
                kept.append(FoundSpan(start, end, label))
                counts.labels[label] += 1
                counts.used.add(index)
            elif len(owners) == 1:
                counts.contained += 1
            else:
                counts.crossing += 1
        return sorted(kept)

    def _candidates(self, doc: Doc, counts: MatchCounts) -> Iterator[tuple[int, int, int]]:
        matches = self._phrases(doc)
        if matches:
            tokens = doc.to_array([self._attr]).reshape(-1).tolist()
            smart = self.settings.case == "smart"
            for _, start, end in matches:
                key = tuple(tokens[start:end])
                if smart and not _case_fits(doc[start:end].text, self._level[key]):
                    counts.wrong_case += 1
                    continue
                index = self._owner[key]
                counts.found.add(index)
                yield start, end, index
        if len(self._patterns):
            for rule, start, end in self._patterns(doc):
                if start < end:
                    index = int(self.nlp.vocab.strings[rule])
                    counts.found.add(index)
                    yield start, end, index

    def _read(
        self, entry: Entry, sharing: dict[Key, list[int]], bad_lines: list[BadLine] | None
    ) -> None:
        self.report.read += 1
        index = len(self.entries)
        if entry.pattern is not None:
            try:
                self._patterns.add(str(index), [entry.pattern])
            except (MatchPatternError, ValueError) as error:
                reason = f"spaCy refuses the token pattern ({' '.join(str(error).split())})."
                if bad_lines is None:
                    raise ValueError(
                        Errors.R081.format(path=entry.path, line=entry.line, reason=reason)
                    ) from error
                bad_lines.append(BadLine(str(entry.path), entry.line, reason))
                return
            self.report.token_patterns += 1
            self.entries.append(entry)
            return
        text = entry.text
        if self.settings.whitespace == "normalise":
            text = " ".join(text.split())
        if text.casefold() in self.settings.exclude:
            self.report.excluded += 1
            return
        if len(text) < self.settings.min_length:
            self.report.too_short += 1
            return
        self.entries.append(entry)
        for key in self._keys(text):
            if key in self._owner:
                sharing.setdefault(key, [self._owner[key]]).append(index)
            else:
                self._owner[key] = index
                self._level[key] = _case_level(text)

    def _keys(self, text: str) -> Iterable[Key]:
        """The token sequences that are a name. Corpora differ in whether a space is a token of its
        own and in where words are split, so each name has up to two."""
        vocab = self.nlp.vocab
        if self.settings.tokens == "characters":
            docs = [Doc(vocab, words=[char for char in text if not char.isspace()])]
            if len(docs[0]) < len(text):
                docs.append(Doc(vocab, words=list(text)))
        else:
            docs = [self.nlp.make_doc(text)]
            words = text.split()
            if " ".join(words) == text and words != [token.text for token in docs[0]]:
                docs.append(Doc(vocab, words=words))
        return (tuple(doc.to_array([self._attr]).reshape(-1).tolist()) for doc in docs if len(doc))

    def _settle(self, sharing: dict[Key, list[int]]) -> None:
        """Give each name that several entries share to one of them."""
        repeated: set[int] = set()
        ambiguous: dict[str, list[str]] = {}
        for key, indices in sharing.items():
            frequency: Counter[str] = Counter()
            for index in indices:
                frequency[self.entries[index].label] += self.entries[index].count
            chosen = next(iter(frequency))
            if self.settings.ambiguous == "frequency":
                # A Counter lists equal counts in the order in which they came.
                chosen = frequency.most_common(1)[0][0]
            if len(frequency) > 1:
                others = [label for label in frequency if label != chosen]
                ambiguous.setdefault(self.entries[indices[0]].text, [chosen, *others])
                if self.settings.ambiguous == "drop":
                    del self._owner[key]
                    continue
            same = [index for index in indices if self.entries[index].label == chosen]
            self._owner[key] = same[0]
            self._level[key] = max(_case_level(self.entries[index].text) for index in same)
            repeated.update(same[1:])
        self.report.repeated = len(repeated)
        self.report.ambiguous = len(ambiguous)
        self.report.ambiguous_examples = [
            f"{text}: {', '.join(labels)}"
            for text, labels in islice(ambiguous.items(), _MAX_EXAMPLES)
        ]

    def matchable(self) -> set[int]:
        """RETURNS (Set[int]): Entries that can match: not repeated, not given up as ambiguous."""
        patterns = {i for i, entry in enumerate(self.entries) if entry.pattern is not None}
        return patterns | set(self._owner.values())


def check_choice(value: str, option: str, known: Iterable[str]) -> None:
    """Raise an error that names the option if a value is not one of those known."""
    if value not in known:
        raise ValueError(Errors.R083.format(value=value, option=option, known=", ".join(known)))


def check_minimum(value: int, option: str, minimum: int) -> None:
    """Raise an error that names the option if a number is too small."""
    if value < minimum:
        raise ValueError(Errors.R086.format(option=option, minimum=minimum, value=value))


def _case_level(text: str) -> int:
    if text.isupper():
        return _ONLY_CAPITALS
    return _ANY_CASE if text == text.lower() else _NOT_LOWER


def _case_fits(text: str, level: int) -> bool:
    if level == _ONLY_CAPITALS:
        return text.isupper()
    return level == _ANY_CASE or text != text.lower()
