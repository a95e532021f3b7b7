import pytest
import spacy
import srsly
from spacy.tokens import Doc

from spacy_robust_ner.corpus.io import write_docs

SENTENCES = [
    (["Ada", "Lovelace", "lives", "in", "London", "."], ["B-PER", "I-PER", "O", "O", "B-LOC", "O"]),
    (["Nobody", "came", "to", "Paris", "."], ["O", "O", "O", "B-LOC", "O"]),
]


@pytest.fixture
def corpora(tmp_path):
    vocab = spacy.blank("en").vocab
    for name in ("train", "dev"):
        docs = (Doc(vocab, words=words, ents=tags) for words, tags in SENTENCES * 3)
        write_docs(docs, tmp_path / f"{name}.spacy")
    return tmp_path


@pytest.fixture
def experiment(corpora):
    """The path of an experiment file on two sentences."""
    dev = str(corpora / "dev.spacy")
    content = {
        "title": "Two sentences",
        "datasets": [
            {"name": "two", "train": str(corpora / "train.spacy"), "dev": dev, "test": dev}
        ],
        "methods": ["ner", "spancat"],
        "overrides": {"training.max_steps": 30, "training.eval_frequency": 10},
    }
    path = corpora / "experiment.yml"
    srsly.write_yaml(path, content)
    return path


@pytest.fixture
def change(experiment):
    """Sets fields of the experiment file."""

    def set_fields(**fields):
        srsly.write_yaml(experiment, {**srsly.read_yaml(experiment), **fields})

    return set_fields
