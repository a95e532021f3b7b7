"""Made-up sentences with entities, and an encoder with random weights that reads them."""

import random
from collections.abc import Sequence
from pathlib import Path

import torch
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.vocab import Vocab

LABELS = ("LOC", "MISC", "ORG", "PER")
_SYLLABLES = ("ba", "den", "ir", "ko", "lum", "mas", "ne", "ol", "pra", "qui", "ros", "ta", "vel")
_WORDS = [a + b for a in _SYLLABLES for b in _SYLLABLES]
# Few, so that a component learns them in a few steps.
_NAMES = [word.title() for word in _SYLLABLES[:12]]
# About as dense as in newspaper text.
_TOKENS_AN_ENTITY = 8
_ENTITY_WIDTHS = (1, 1, 2, 3)


def make_docs(
    vocab: Vocab, *, count: int, length: int, seed: int = 0, labeled: float = 1.0
) -> list[Doc]:
    """Make sentences of equal length in which capitalized words are entities.

    vocab (Vocab): The vocabulary.
    count (int): How many.
    length (int): Tokens in each.
    seed (int): Of the words.
    labeled (float): The share of the entities that have a label.
    RETURNS (List[Doc]): The sentences.
    """
    rng = random.Random(seed)
    return [_make_doc(vocab, length, rng, labeled) for _ in range(count)]


def _make_doc(vocab: Vocab, length: int, rng: random.Random, labeled: float) -> Doc:
    words = rng.choices(_WORDS, k=length)
    entities = []
    for block in range(0, length, _TOKENS_AN_ENTITY):
        start = block + rng.randrange(_TOKENS_AN_ENTITY - max(_ENTITY_WIDTHS))
        end = min(start + rng.choice(_ENTITY_WIDTHS), length)
        kind = rng.randrange(len(LABELS))
        # Each label has its own names, so that there is something to learn.
        words[start:end] = rng.choices(_NAMES[kind :: len(LABELS)], k=max(0, end - start))
        if start < end and rng.random() < labeled:
            entities.append((start, end, LABELS[kind]))
    doc = Doc(vocab, words=words)
    doc.set_ents([Span(doc, start, end, label) for start, end, label in entities])
    return doc


def as_examples(docs: Sequence[Doc], *, spans_key: str | None = None) -> list[Example]:
    """docs (Sequence[Doc]): Annotated documents.
    spans_key (Optional[str]): Also offer their entities as this span group.
    RETURNS (List[Example]): Training examples with the same tokens.
    """
    if spans_key is not None:
        for doc in docs:
            doc.spans[spans_key] = list(doc.ents)
    return [Example(bare_copy(doc), doc) for doc in docs]


def bare_copy(doc: Doc) -> Doc:
    """RETURNS (Doc): The words of a document alone."""
    return Doc(doc.vocab, words=[token.text for token in doc])


def write_encoder(path: Path, *, layers: int = 6, hidden: int = 384) -> Path:
    """Write a BERT with random weights, and a tokenizer with one word piece for each word of the
    made-up sentences. The default size is that of MiniLM.

    path (Path): The directory to write.
    layers (int): Transformer layers.
    hidden (int): Width of the token vectors.
    RETURNS (Path): The directory.
    """
    from transformers import BertConfig, BertModel, BertTokenizerFast

    path.mkdir(parents=True, exist_ok=True)
    vocabulary = path / "vocab.txt"
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *_WORDS, *_NAMES]
    vocabulary.write_text("\n".join(pieces) + "\n", encoding="utf8")
    BertTokenizerFast(str(vocabulary), do_lower_case=False).save_pretrained(path)
    config = BertConfig(
        vocab_size=len(pieces),
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=hidden // 32,
        intermediate_size=4 * hidden,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        BertModel(config).save_pretrained(path)
    return path
