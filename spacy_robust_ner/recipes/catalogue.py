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
    """

    name: str
    group: str
    title: str
    source: str
    idea: str


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
        ),
        Method(
            "span-all",
            "span",
            "span, all negatives",
            "the naive baseline of the papers",
            "every unlabeled span is a negative",
        ),
        Method(
            "span-ns",
            "span",
            "span-NS",
            "Li et al. 2021",
            "a few unlabeled spans, drawn at random, are the negatives",
        ),
        Method(
            "span-nsv",
            "span",
            "span-NS-V",
            "Li et al. 2022",
            "negatives that are hard but do not look like entities are drawn more often",
        ),
        Method(
            "nrces",
            "span",
            "NRCES",
            "Kang et al. 2022",
            "the loss of negatives becomes bounded, so that it gives up on those it can't explain",
        ),
        Method(
            "scl-rai",
            "span",
            "SCL-RAI",
            "Si et al. 2022",
            "contrastive learning, and retrieval that lowers the threshold for entities",
        ),
        Method(
            "scl-rai-ns",
            "span",
            "SCL-RAI + NS",
            "Si et al. 2022",
            "the same with randomly drawn negatives",
        ),
        Method(
            "top-neg",
            "span",
            "Top-Neg",
            "Xu et al. 2023",
            "the unlabeled spans most like entities are the negatives",
        ),
        Method(
            "biaffine",
            "span",
            "biaffine",
            "Yu et al. 2020",
            "biaffine head; every unlabeled span is a negative",
        ),
        Method(
            "bnpu",
            "span",
            "bnPU",
            "Peng et al. 2019",
            "risk of unlabeled spans, less what the class priors say is hidden in them",
        ),
        Method(
            "conf-mpu",
            "span",
            "Conf-MPU",
            "Zhou et al. 2022",
            "the same risk, with the confidence of a first-stage pipeline",
        ),
        Method(
            "span-ratio",
            "span",
            "span-NS + ratio",
            "this package, after Effland and Collins 2021",
            "randomly drawn negatives, and the model is told how many entities to expect",
        ),
        Method(
            "span-segments",
            "span",
            "span segments + ratio",
            "this package, after Sarawagi and Cohen 2004, Effland and Collins 2021",
            "entities compete for tokens, unlabeled spans are free, and their number is known",
        ),
        Method(
            "token-softmax",
            "token",
            "token, softmax",
            "the naive baseline of the papers",
            "tags each token for itself; trusts every O",
        ),
        Method(
            "token-crf",
            "token",
            "token, CRF",
            "Lample et al. 2016",
            "tags with a CRF; trusts every O",
        ),
        Method(
            "two-step",
            "token",
            "two-step",
            "Zhang et al. 2024",
            "explores, removes the O tokens that look least like O, and starts again",
        ),
        Method(
            "two-step-angle",
            "token",
            "two-step, angle",
            "Zhang et al. 2024",
            "the same with decision values that sum to zero",
        ),
        Method(
            "two-step-crf",
            "token",
            "two-step, CRF",
            "Zhang et al. 2024",
            "the same with a CRF",
        ),
        Method(
            "two-step-angle-crf",
            "token",
            "two-step, angle + CRF",
            "Zhang et al. 2024",
            "the same with both",
        ),
        Method(
            "partial-crf",
            "token",
            "partial CRF",
            "Yang et al. 2018",
            "every O token is unknown",
        ),
        Method(
            "token-ratio",
            "token",
            "partial CRF + ratio",
            "Effland and Collins 2021",
            "every O token is unknown, but the share of tokens in entities is not",
        ),
        Method(
            "weighted-partial-crf",
            "token",
            "weighted partial CRF",
            "Jie et al. 2019",
            "models that did not see a sentence guess its unknown tags, and the guesses weigh",
        ),
        Method(
            "fuzzy-crf",
            "token",
            "fuzzy CRF",
            "Shang et al. 2018",
            "a dictionary and a list of phrases say which tags a token may have",
        ),
    )
}
