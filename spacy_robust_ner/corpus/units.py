"""The documents that a dictionary is matched over: text and tokens, apart from their gold.

What goes on from here to the output has never touched the input's annotation: only words, spaces
and sentence starts are taken over. The gold travels beside it.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, zip_longest
from pathlib import Path
from typing import NamedTuple

from spacy.language import Language
from spacy.tokens import Doc

from ..errors import Errors
from .agreement import GoldDocument, dense_words
from .convert import read_inputs
from .convert_report import ConvertReport
from .source import ReadOptions
from .streams import read_lines

RAW_FORMATS = ("lines", "files")

_RAW_SUFFIXES = (".txt", ".text", "")
_SNIFFED_LINES = 50
_TAG = re.compile(r"O|UNK|-|[A-Z]-\S+")
_CHARACTER_SHARE = 0.9


class TokenisedText(NamedTuple):
    """A text that came with its tokens.

    words (List[str]): The tokens.
    spaces (Optional[List[bool]]): Whether a space follows each; None if the input does not say.
    sent_starts (Optional[List[Union[bool, int, None]]]): Sentence starts; None if there are none.
    """

    words: list[str]
    spaces: list[bool] | None
    sent_starts: list[bool | int | None] | None

    @classmethod
    def from_doc(cls, doc: Doc) -> "TokenisedText":
        """doc (Doc): A document, annotated or not.
        RETURNS (TokenisedText): Its text and tokens.
        """
        return cls(
            [token.text for token in doc],
            None if doc.has_unknown_spaces else [bool(token.whitespace_) for token in doc],
            [token.is_sent_start for token in doc] if doc.has_annotation("SENT_START") else None,
        )


Text = str | TokenisedText


class Unit(NamedTuple):
    """A document to annotate and its gold annotation, if there is one."""

    text: Text
    gold: GoldDocument | None


def read_units(
    inputs: Sequence[Path],
    *,
    nlp: Language,
    format: str = "auto",
    own_gold: bool = False,
    options: ReadOptions | None = None,
    report: ConvertReport | None = None,
) -> Iterator[Unit]:
    """Read documents of any kind.

    inputs (Sequence[Path]): Files or directories.
    nlp (Language): Tokenizes the running text of annotated formats. Raw text stays a string.
    format (str): "lines" for raw text with a document a line, "files" for a document a file, or a
        format of the conversion. With "auto", text files without a tag at the end of each of their
        first lines are raw lines.
    own_gold (bool): Whether the annotation of the input is its gold.
    options (Optional[ReadOptions]): How to read annotated formats.
    report (Optional[ConvertReport]): Filled while reading annotated formats.
    YIELDS (Unit): The documents; blank lines and files are none.
    """
    for path in inputs:
        for file in _raw_files(path, format):
            if format == "files":
                texts: Iterable[str] = [_read_text(file)]
            elif format == "lines" or (format == "auto" and is_raw_text(file)):
                texts = _read_text_lines(file)
            else:
                for doc in read_inputs(
                    [file], nlp=nlp, format=format, options=options, report=report
                ):
                    gold = GoldDocument.from_doc(doc) if own_gold else None
                    yield Unit(TokenisedText.from_doc(doc), gold)
                continue
            yield from (Unit(text, None) for text in texts if text.strip())


def pair_with_gold(units: Iterable[Unit], gold_docs: Iterable[Doc]) -> Iterator[Unit]:
    """Put the documents of a gold corpus beside those of the input.

    units (Iterable[Unit]): The input.
    gold_docs (Iterable[Doc]): The gold corpus: the same texts in the same order. The tokens may
        differ.
    YIELDS (Unit): The input's documents with their gold.
    """
    pairs = zip_longest(units, gold_docs)
    for number, (unit, gold_doc) in enumerate(pairs, start=1):
        if unit is None or gold_doc is None:
            shorter = "input" if unit is None else "gold corpus"
            reason = f"the {shorter} ends before it"
            raise ValueError(Errors.R084.format(number=number, reason=reason))
        gold = GoldDocument.from_doc(gold_doc)
        words = unit.text.split() if isinstance(unit.text, str) else unit.text.words
        text = "".join(dense_words(words))
        if text != gold.text:
            reason = f"the input has '{_cut(text)}', the gold corpus '{_cut(gold.text)}'"
            raise ValueError(Errors.R084.format(number=number, reason=reason))
        yield Unit(unit.text, gold)


def detect_tokens(texts: Iterable[Text], nlp: Language) -> str:
    """Find out whether the tokens of a corpus are words or single characters.

    texts (Iterable[Text]): A sample of the corpus.
    nlp (Language): Tokenizes raw text.
    RETURNS (str): "characters" if nine of ten tokens are one character long, else "words".
    """
    total = single = 0
    for text in texts:
        words = [t.text for t in nlp.make_doc(text)] if isinstance(text, str) else text.words
        total += len(words)
        single += sum(len(word) == 1 for word in words)
    return "characters" if total and single >= _CHARACTER_SHARE * total else "words"


def is_raw_text(path: Path) -> bool:
    """Tell raw text from columns of tokens and tags, by the ends of the first lines.

    path (Path): A file or directory.
    RETURNS (bool): True for a text file of which some line does not end in a tag.
    """
    if not path.is_file() or path.suffix not in _RAW_SUFFIXES:
        return False
    lines = (item.value for item in read_lines(path) if item.value and item.value.strip())
    for line in islice(lines, _SNIFFED_LINES):
        _, _, last = line.rstrip().replace("\t", " ").rpartition(" ")
        has_columns = last != line and _TAG.fullmatch(last)
        if not has_columns and not line.startswith("-DOCSTART-"):
            return True
    return False


def _raw_files(path: Path, format: str) -> list[Path]:
    if path.is_dir() and (format in RAW_FORMATS or format == "auto"):
        return sorted(file for file in path.rglob("*.txt") if file.is_file()) or [path]
    return [path]


def _read_text(path: Path) -> str:
    return "\n".join(_read_text_lines(path))


def _read_text_lines(path: Path) -> Iterator[str]:
    if not path.is_file():
        raise FileNotFoundError(Errors.R087.format(path=path))
    for item in read_lines(path):
        if item.problem:
            raise ValueError(Errors.R088.format(path=path, line=item.line, reason=item.problem))
        yield item.value


def _cut(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:40]}…"
