"""Write the whole sample to a directory."""

from dataclasses import dataclass
from pathlib import Path

from ..errors import Errors
from .chinese import chinese_sentences
from .dictionaries import make_dictionaries
from .english import SIZES, EnglishSample, to_columns, to_raw_text
from .render import Sentence, columns, tagged_characters, tagged_words

DEFAULT_SEED = 0
RAW_DOCUMENTS = 400


@dataclass(frozen=True)
class SplitCounts:
    """What a written split holds.

    documents, sentences, tokens, entities (int): The counts.
    """

    documents: int
    sentences: int
    tokens: int
    entities: int


def generate_sample(output_dir: Path, *, seed: int = DEFAULT_SEED) -> dict[str, SplitCounts]:
    """Write the sample corpus: English and Chinese columns, dictionaries and raw text.

    The same seed gives the same bytes on every machine. Files of an earlier run are replaced,
    other files in the directory are left alone.

    output_dir (Path): The directory; it is made if it doesn't exist.
    seed (int): The seed.
    RETURNS (Dict[str, SplitCounts]): The counts of each column file, by its path in the directory.
    """
    if output_dir.exists() and not output_dir.is_dir():
        raise NotADirectoryError(Errors.R041.format(path=output_dir))
    files: dict[str, str] = {}
    counts: dict[str, SplitCounts] = {}
    sample = EnglishSample(seed)
    splits = {
        split: sample.documents(split, size.documents, stream=split)
        for split, size in SIZES.items()
    }
    for split, documents in splits.items():
        name = f"sample/{split}.conll"
        files[name] = to_columns(documents)
        sentences = [sentence for document in documents for sentence in document]
        counts[name] = _count(len(documents), sentences, [tagged_words(s) for s in sentences])
    for label, entries in make_dictionaries(sample, splits["train"]).items():
        files[f"sample/dictionaries/{label}.txt"] = "".join(f"{entry}\n" for entry in entries)
    files["sample/raw.txt"] = to_raw_text(sample.documents("train", RAW_DOCUMENTS, stream="raw"))
    for split, sentences in chinese_sentences(seed).items():
        name = f"zh_sample/{split}.bmes"
        rows = [tagged_characters(sentence) for sentence in sentences]
        files[name] = columns(rows)
        counts[name] = _count(len(sentences), sentences, rows)
    for name, text in files.items():
        path = output_dir / name
        path.parent.mkdir(parents=True, exist_ok=True)
        # Bytes, because text mode would write other line ends on Windows.
        path.write_bytes(text.encode("utf8"))
    return counts


def _count(
    documents: int, sentences: list[Sentence], rows: list[list[tuple[str, str]]]
) -> SplitCounts:
    return SplitCounts(
        documents=documents,
        sentences=len(sentences),
        tokens=sum(len(sentence_rows) for sentence_rows in rows),
        entities=sum(len(sentence.entities) for sentence in sentences),
    )
