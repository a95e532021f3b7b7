"""Which methods and encoders there are, and where they come from."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Method:
    """A way to train, as a config block in ``methods/<name>.cfg``.

    name (str): The name on the command line and of the file.
    group (str): The folder under ``configs/``.
    title (str): The name in tables and plots.
    source (str): Where the method was published.
    idea (str): What it does about unlabeled entities, in one sentence.
    spans_key (Optional[str]): The span group that holds the predictions, if not ``doc.ents``.
    """

    name: str
    group: str
    title: str
    source: str
    idea: str
    spans_key: str | None = None


@dataclass(frozen=True)
class Encoder:
    """A token encoder, as the merged config blocks ``encoders/<block>.cfg``.

    name (str): The name on the command line.
    blocks (Tuple[str, ...]): The blocks, later ones override earlier ones.
    component (str): The pipeline component that holds the encoder.
    idea (str): What it is, in one sentence.
    """

    name: str
    blocks: tuple[str, ...]
    component: str
    idea: str


ENCODERS = {
    encoder.name: encoder
    for encoder in (
        Encoder(
            "cnn",
            ("_common", "_tok2vec", "cnn"),
            "tok2vec",
            "spaCy's hash embeddings and window CNN; trains in minutes on a CPU",
        ),
        Encoder(
            "bilstm",
            ("_common", "_tok2vec", "bilstm"),
            "tok2vec",
            "hash embeddings and a bidirectional LSTM in PyTorch",
        ),
        Encoder(
            "trf",
            ("_common", "trf"),
            "transformer",
            "any Hugging Face encoder through spacy-transformers, on a GPU with mixed precision",
        ),
    )
}

METHODS = {
    method.name: method
    for method in (
        Method(
            "ner",
            "baseline",
            "spaCy ner",
            "spaCy",
            "transition-based parser; trusts every O",
        ),
        Method(
            "spancat",
            "baseline",
            "spaCy spancat",
            "spaCy",
            "single-label span categorizer; every unlabeled span is a negative",
            spans_key="sc",
        ),
    )
}
