"""Experiments: every combination of dataset, masking, method, encoder and seed."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

MaskKind = Literal["entity", "surface"]


@dataclass(frozen=True)
class Part:
    """A corpus that is training data, alone or beside others.

    path (Path): The .spacy file or directory.
    complete (Optional[bool]): Whether its documents are annotated in full; None leaves their flags
        as they are.
    limit (Optional[int]): How many documents to take, from the beginning; None for all.
    """

    path: Path
    complete: bool | None = None
    limit: int | None = None


@dataclass(frozen=True)
class EncoderChoice:
    """An encoder with settings.

    encoder (str): A name in ENCODERS.
    name (str): What tables call it.
    overrides (Dict[str, Any]): Config settings, in dotted notation.
    """

    encoder: str
    name: str
    overrides: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Variant:
    """A method with settings.

    method (str): A name in METHODS.
    name (str): A name that is unique in the matrix.
    title (str): What tables call it.
    overrides (Dict[str, Any]): Config settings, in dotted notation.
    varied (Dict[str, Any]): Those of the settings that the experiment crosses with other values.
    first_stage (Optional[str]): Name of the variant whose pipeline it builds on.
    encoders (Optional[Tuple[str, ...]]): Names of the encoders that it runs with; None for all.
    """

    method: str
    name: str
    title: str
    overrides: dict[str, Any] = field(default_factory=dict)
    varied: dict[str, Any] = field(default_factory=dict)
    first_stage: str | None = None
    encoders: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Masking:
    """How many labels the training data lose, and which.

    rate (float): The share of the entities.
    kind (MaskKind): Whether each entity is drawn for itself, or all mentions of a string at once.
    exact (bool): Whether the rate is met exactly, not on average.
    seed (int): The seed of the choice.
    """

    rate: float
    kind: MaskKind = "entity"
    exact: bool = False
    seed: int = 0

    @property
    def name(self) -> str:
        """RETURNS (str): A name that is unique for the settings."""
        exact = "-exact" if self.exact else ""
        seed = f"-seed{self.seed}" if self.seed else ""
        return f"{self.kind}-{self.rate:g}{exact}{seed}"


@dataclass(frozen=True)
class Dataset:
    """Training, development and test data.

    name (str): What tables call it.
    train (Tuple[Part, ...]): The training data.
    dev (Path): The corpus that chooses the best checkpoint.
    test (Path): The corpus of the reported figures.
    lang (str): The language code.
    gold (Optional[Path]): The training documents with all their entities, if it is known which ones
        the training data lack.
    mask_rate (float): The share of entities that the training data are known to lack.
    masking (Optional[Tuple[Optional[Masking], ...]]): Instead of the matrix's masking.
    encoders (Optional[Tuple[EncoderChoice, ...]]): Instead of the matrix's encoders.
    overrides (Dict[str, Any]): Config settings, in dotted notation.
    """

    name: str
    train: tuple[Part, ...]
    dev: Path
    test: Path
    lang: str = "en"
    gold: Path | None = None
    mask_rate: float = 0.0
    masking: tuple[Masking | None, ...] | None = None
    encoders: tuple[EncoderChoice, ...] | None = None
    overrides: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Cell:
    """One training run.

    dataset (Dataset): The data.
    masking (Optional[Masking]): What the training data lose; None for the data as they are.
    variant (Variant): The method.
    encoder (EncoderChoice): The encoder.
    seed (int): The random seed.
    overrides (Dict[str, Any]): Config settings of the matrix, the dataset, the encoder and the
        method; of the same setting, the last one counts.
    """

    dataset: Dataset
    masking: Masking | None
    variant: Variant
    encoder: EncoderChoice
    seed: int
    overrides: dict[str, Any]

    @property
    def name(self) -> str:
        """RETURNS (str): A name that is unique in the matrix and fit for a directory."""
        return self._name_for(self.variant.name)

    @property
    def first_stage(self) -> str | None:
        """RETURNS (Optional[str]): Name of the cell whose pipeline this one builds on."""
        stage = self.variant.first_stage
        return None if stage is None else self._name_for(stage)

    def _name_for(self, variant: str) -> str:
        masking = "given" if self.masking is None else self.masking.name
        return "--".join(
            (self.dataset.name, masking, variant, self.encoder.name, f"seed{self.seed}")
        )

    def as_dict(self) -> dict[str, Any]:
        """RETURNS (Dict[str, Any]): What identifies the run in a table of results."""
        return {
            "cell": self.name,
            "dataset": self.dataset.name,
            "lang": self.dataset.lang,
            "mask_rate": self.dataset.mask_rate if self.masking is None else self.masking.rate,
            "mask_kind": None if self.masking is None else self.masking.kind,
            "method": self.variant.method,
            "variant": self.variant.name,
            "title": self.variant.title,
            "varied": self.variant.varied,
            "encoder": self.encoder.name,
            "seed": self.seed,
            "overrides": self.overrides,
        }


@dataclass(frozen=True)
class Matrix:
    """What an experiment file asks for.

    title (str): The report's headline.
    datasets (List[Dataset]): The data.
    masking (List[Optional[Masking]]): What training data lose; None for the data as they are.
    methods (List[Variant]): The methods.
    encoders (List[EncoderChoice]): The encoders.
    seeds (List[int]): The seeds.
    overrides (Dict[str, Any]): Config settings for all runs, in dotted notation.
    configs (Optional[Path]): A directory with training configs as under ``configs/``, instead of
        the package's own.
    recovery_documents (int): Training documents a run that are searched for masked entities.
    keep_models (bool): Whether finished runs keep their pipelines.
    """

    title: str
    datasets: list[Dataset]
    methods: list[Variant]
    masking: list[Masking | None] = field(default_factory=lambda: [None])
    encoders: list[EncoderChoice] = field(default_factory=lambda: [EncoderChoice("cnn", "cnn")])
    seeds: list[int] = field(default_factory=lambda: [0])
    overrides: dict[str, Any] = field(default_factory=dict)
    configs: Path | None = None
    recovery_documents: int = 300
    keep_models: bool = True

    def with_encoder(self, encoder: EncoderChoice) -> "Matrix":
        """RETURNS (Matrix): The same experiment, where all runs have this encoder and none of the
        settings of the encoders that it had.
        """
        return replace(
            self,
            datasets=[replace(dataset, encoders=None) for dataset in self.datasets],
            methods=[replace(variant, encoders=None) for variant in self.methods],
            encoders=[encoder],
        )

    def cells(self) -> Iterator[Cell]:
        """YIELDS (Cell): The runs, dataset by dataset."""
        for dataset in self.datasets:
            for masking in dataset.masking or self.masking:
                for variant in self.methods:
                    for encoder in dataset.encoders or self.encoders:
                        if encoder.name not in (variant.encoders or (encoder.name,)):
                            continue
                        overrides = {
                            **self.overrides,
                            **dataset.overrides,
                            **encoder.overrides,
                            **variant.overrides,
                        }
                        for seed in self.seeds:
                            yield Cell(dataset, masking, variant, encoder, seed, overrides)
