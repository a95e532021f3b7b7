"""Experiments: every combination of training corpus, method, encoder and seed, from one file."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import srsly

from ..errors import Errors
from ..recipes import ENCODERS, METHODS

_FIELDS = {
    "title": str,
    "train": list,
    "dev": str,
    "test": str,
    "methods": list,
    "encoders": list,
    "seeds": list,
    "overrides": dict,
    "configs": str,
}
_REQUIRED = ("train", "dev", "test", "methods")


@dataclass(frozen=True)
class TrainingCorpus:
    """A version of the training data.

    name (str): What tables call it.
    path (Path): The .spacy file or directory.
    masked (float): The share of its entities that were taken away.
    """

    name: str
    path: Path
    masked: float


@dataclass(frozen=True)
class Cell:
    """One training run.

    corpus (TrainingCorpus): What it trains on.
    method (str): The method's name.
    title (str): The method's name in tables.
    encoder (str): The encoder's name.
    seed (int): The random seed.
    config (Path): The training config.
    """

    corpus: TrainingCorpus
    method: str
    title: str
    encoder: str
    seed: int
    config: Path

    @property
    def name(self) -> str:
        """RETURNS (str): A name that is unique in the matrix and fit for a directory."""
        return f"{self.corpus.name}--{self.method}--{self.encoder}--{self.seed}"


@dataclass(frozen=True)
class Matrix:
    """What an experiment file asks for.

    title (str): The report's headline.
    train (List[TrainingCorpus]): The versions of the training data.
    dev (Path): The corpus that chooses the best checkpoint.
    test (Path): The corpus of the reported figures.
    methods (List[str]): The methods' names.
    encoders (List[str]): The encoders' names.
    seeds (List[int]): The seeds.
    overrides (Dict[str, Any]): Config settings for all runs, in dotted notation.
    configs (Path): The directory of the training configs.
    """

    title: str
    train: list[TrainingCorpus]
    dev: Path
    test: Path
    methods: list[str]
    encoders: list[str] = field(default_factory=lambda: ["cnn"])
    seeds: list[int] = field(default_factory=lambda: [0])
    overrides: dict[str, Any] = field(default_factory=dict)
    configs: Path = Path("configs")

    def cells(self) -> Iterator[Cell]:
        """YIELDS (Cell): The runs, corpus by corpus."""
        for corpus in self.train:
            for name in self.methods:
                method = METHODS[name]
                for encoder in self.encoders:
                    for seed in self.seeds:
                        yield Cell(
                            corpus=corpus,
                            method=name,
                            title=method.title,
                            encoder=encoder,
                            seed=seed,
                            config=self.configs / method.group / f"{name}-{encoder}.cfg",
                        )


def load_matrix(path: Path) -> Matrix:
    """Read an experiment file.

    path (Path): A YAML file with the fields of Matrix.
    RETURNS (Matrix): The experiment; anything unknown or of the wrong kind is an error.
    """
    if not path.is_file():
        raise FileNotFoundError(Errors.R201.format(path=path))
    try:
        data = srsly.read_yaml(path)
    except ValueError as error:
        raise ValueError(Errors.R202.format(path=path, reason=error)) from error
    _check(data, path)
    corpora = [_training_corpus(entry, path) for entry in data["train"]]
    return Matrix(
        title=data.get("title", path.stem),
        train=corpora,
        dev=Path(data["dev"]),
        test=Path(data["test"]),
        methods=list(data["methods"]),
        encoders=list(data.get("encoders", ["cnn"])),
        seeds=list(data.get("seeds", [0])),
        overrides=dict(data.get("overrides", {})),
        configs=Path(data.get("configs", "configs")),
    )


def _check(data: Any, path: Path) -> None:
    def wrong(reason: str) -> ValueError:
        return ValueError(Errors.R202.format(path=path, reason=reason))

    if not isinstance(data, dict):
        raise wrong("the file is not a mapping")
    for name in _REQUIRED:
        if name not in data:
            raise wrong(f"the field '{name}' is missing")
    for name, value in data.items():
        if name not in _FIELDS:
            raise wrong(f"unknown field '{name}'; known: {', '.join(_FIELDS)}")
        if not isinstance(value, _FIELDS[name]):
            raise wrong(f"'{name}' should be a {_FIELDS[name].__name__}, not {value!r}")
    for kind, known in (("methods", METHODS), ("encoders", ENCODERS)):
        for value in data.get(kind, []):
            if value not in known:
                raise wrong(f"unknown entry '{value}' in {kind}; known: {', '.join(known)}")
    for seed in data.get("seeds", []):
        if not isinstance(seed, int):
            raise wrong(f"the seed {seed!r} is not a whole number")


def _training_corpus(entry: Any, path: Path) -> TrainingCorpus:
    try:
        return TrainingCorpus(
            name=str(entry["name"]), path=Path(entry["path"]), masked=float(entry["masked"])
        )
    except (KeyError, TypeError, ValueError) as error:
        reason = f"{entry!r} under 'train' should have name, path and masked ({error!r})"
        raise ValueError(Errors.R202.format(path=path, reason=reason)) from error
