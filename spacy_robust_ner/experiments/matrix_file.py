"""Read an experiment from a YAML or TOML file, and say what is wrong with it."""

import itertools
import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import srsly

from ..errors import Errors
from ..recipes import ENCODERS, METHODS
from .fields import as_list, as_name, as_rate, as_seed, check_fields, check_unique, slug, unknown
from .matrix import Dataset, EncoderChoice, Masking, MaskKind, Matrix, Part, Variant

_FIELDS = {
    "base": str,
    "title": str,
    "datasets": list,
    "masking": list,
    "methods": list,
    "encoders": list,
    "seeds": list,
    "overrides": dict,
    "vary": dict,
    "configs": str,
    "recovery_documents": int,
    "keep_models": bool,
}

# Stands for the encoders that the file names.
GIVEN_ENCODERS = "given"


def load_matrix(path: Path, *, encoder: str = GIVEN_ENCODERS) -> Matrix:
    """Read an experiment file.

    path (Path): A YAML or TOML file with the fields of Matrix. With ``base``, another such file,
        it has that file's fields where it has none of its own.
    encoder (str): One encoder for all runs, instead of the file's: a name in ENCODERS, or the name
        or path of a transformer.
    RETURNS (Matrix): The experiment; anything unknown or of the wrong kind is an error.
    """
    fields: dict[str, Any] = {}
    seen = []
    here: Path | None = path
    while here is not None:
        if not here.is_file():
            raise FileNotFoundError(Errors.R201.format(path=here))
        try:
            own = _read(here)
            check_fields(own, "the file", _FIELDS, required=())
            if here in seen:
                raise ValueError("it is its own base")
        except ValueError as error:
            raise ValueError(Errors.R202.format(path=here, reason=error)) from error
        seen.append(here)
        fields = {**own, **fields}
        here = here.parent / own["base"] if "base" in own else None
    try:
        matrix = _Reader().matrix(fields, path.stem)
    except ValueError as error:
        raise ValueError(Errors.R202.format(path=path, reason=error)) from error
    return matrix if encoder == GIVEN_ENCODERS else matrix.with_encoder(choose_encoder(encoder))


def choose_encoder(encoder: str) -> EncoderChoice:
    """RETURNS (EncoderChoice): A name in ENCODERS, or the name or path of a transformer."""
    if encoder in ENCODERS:
        return EncoderChoice(encoder, encoder)
    name = slug(Path(encoder).name)
    if not name:
        raise ValueError(Errors.R212.format(encoder=encoder, known=", ".join(ENCODERS)))
    return EncoderChoice("trf", name, {"components.transformer.model.name": encoder})


def _read(path: Path) -> Any:
    if path.suffix != ".toml":
        return srsly.read_yaml(path)
    if sys.version_info < (3, 11):
        raise ValueError("TOML needs Python 3.11 or newer. Write the file as YAML")
    import tomllib

    return tomllib.loads(path.read_text(encoding="utf8"))


class _Reader:
    """The fields of an experiment file, each error with the place in the file."""

    def matrix(self, data: Any, stem: str) -> Matrix:
        check_fields(data, "the file", _FIELDS, required=("datasets", "methods"))
        methods = [v for entry in data["methods"] for v in self.variants(entry)]
        methods = list(_varied(methods, data.get("vary", {})))
        matrix = Matrix(
            title=data.get("title", stem),
            datasets=[self.dataset(entry) for entry in data["datasets"]],
            masking=self.maskings(data.get("masking", [None])),
            methods=methods,
            encoders=[self.encoder(entry) for entry in data.get("encoders", ["cnn"])],
            seeds=[as_seed(seed) for seed in data.get("seeds", [0])],
            overrides=dict(data.get("overrides", {})),
            configs=Path(data["configs"]) if "configs" in data else None,
            recovery_documents=data.get("recovery_documents", 300),
            keep_models=data.get("keep_models", True),
        )
        _check_matrix(matrix)
        return matrix

    def dataset(self, entry: Any) -> Dataset:
        known = {
            "name": str,
            "train": (str, list),
            "dev": str,
            "test": str,
            "lang": str,
            "gold": str,
            "mask_rate": (int, float),
            "masking": list,
            "encoders": list,
            "overrides": dict,
        }
        check_fields(entry, "a dataset", known, required=("name", "train", "dev", "test"))
        train = entry["train"]
        parts = [self.part(part) for part in (train if isinstance(train, list) else [train])]
        masking, encoders = entry.get("masking"), entry.get("encoders")
        return Dataset(
            name=as_name(entry["name"]),
            train=tuple(parts),
            dev=Path(entry["dev"]),
            test=Path(entry["test"]),
            lang=entry.get("lang", "en"),
            gold=Path(entry["gold"]) if "gold" in entry else None,
            mask_rate=as_rate(entry.get("mask_rate", 0.0)),
            masking=None if masking is None else tuple(self.maskings(masking)),
            encoders=None if encoders is None else tuple(self.encoder(e) for e in encoders),
            overrides=dict(entry.get("overrides", {})),
        )

    def part(self, entry: Any) -> Part:
        if isinstance(entry, str):
            return Part(Path(entry))
        known = {"path": str, "complete": bool, "limit": int}
        check_fields(entry, "a part of the training data", known, required=("path",))
        return Part(Path(entry["path"]), entry.get("complete"), entry.get("limit"))

    def maskings(self, entries: list[Any]) -> list[Masking | None]:
        # Nothing to mask is the same for every kind.
        return list(dict.fromkeys(m for entry in entries for m in self.masking(entry)))

    def masking(self, entry: Any) -> Iterable[Masking | None]:
        if entry is None:
            return [None]
        if not isinstance(entry, dict):
            entry = {"rate": entry}
        known = {"rate": object, "kind": (str, list), "exact": bool, "seed": int}
        check_fields(entry, "an entry of masking", known, required=("rate",))
        found: list[Masking | None] = []
        for kind, rate in itertools.product(
            as_list(entry.get("kind", "entity")), as_list(entry["rate"])
        ):
            if kind not in get_args(MaskKind):
                raise unknown("masking kind", kind, get_args(MaskKind))
            masking = Masking(as_rate(rate), kind, entry.get("exact", False), entry.get("seed", 0))
            found.append(masking if masking.rate else None)
        return found

    def variants(self, entry: Any) -> Iterable[Variant]:
        if isinstance(entry, str):
            entry = {"method": entry}
        known = {
            "method": (str, list),
            "name": str,
            "title": str,
            "overrides": dict,
            "vary": dict,
            "first_stage": str,
            "encoders": list,
        }
        check_fields(entry, "a method", known, required=("method",))
        methods = as_list(entry["method"])
        if len(methods) != 1 and entry.keys() & {"name", "title"}:
            raise ValueError(f"several methods can't share a name or a title: {dict(entry)!r}")
        for method in methods:
            if method not in METHODS:
                raise unknown("method", method, METHODS)
            variant = Variant(
                method=method,
                name=as_name(entry.get("name", method)),
                title=entry.get("title", METHODS[method].title),
                overrides=dict(entry.get("overrides", {})),
                first_stage=entry.get("first_stage"),
                encoders=tuple(entry["encoders"]) if "encoders" in entry else None,
            )
            yield from _varied([variant], entry.get("vary", {}))

    def encoder(self, entry: Any) -> EncoderChoice:
        if isinstance(entry, str):
            entry = {"encoder": entry}
        known = {"encoder": str, "name": str, "overrides": dict}
        check_fields(entry, "an encoder", known, required=("encoder",))
        encoder = entry["encoder"]
        if encoder not in ENCODERS:
            raise unknown("encoder", encoder, ENCODERS)
        return EncoderChoice(
            encoder, as_name(entry.get("name", encoder)), dict(entry.get("overrides", {}))
        )


def _varied(variants: Iterable[Variant], vary: Mapping[str, Any]) -> Iterable[Variant]:
    """Cross methods with values of settings, each combination a method of its own."""
    for setting, values in vary.items():
        if not isinstance(values, list) or not values:
            raise ValueError(f"'vary' needs a list of values for '{setting}', not {values!r}")
    for variant in variants:
        for values in itertools.product(*vary.values()):
            chosen = dict(zip(vary, values, strict=True))
            shown = {setting.rpartition(".")[2]: value for setting, value in chosen.items()}
            yield replace(
                variant,
                name="-".join([variant.name, *(slug(f"{k}={v}") for k, v in shown.items())]),
                title=", ".join([variant.title, *(f"{k} = {v}" for k, v in shown.items())]),
                overrides={**variant.overrides, **chosen},
                varied={**variant.varied, **chosen},
            )


def _check_matrix(matrix: Matrix) -> None:
    check_unique("datasets", [dataset.name for dataset in matrix.datasets])
    check_unique("methods", [variant.name for variant in matrix.methods])
    check_unique("encoders", [encoder.name for encoder in matrix.encoders])
    for dataset in matrix.datasets:
        if dataset.encoders is not None:
            check_unique(f"encoders of {dataset.name}", [e.name for e in dataset.encoders])
    check_unique("seeds", [str(seed) for seed in matrix.seeds])
    encoders = {e.name for d in matrix.datasets for e in (d.encoders or matrix.encoders)}
    for variant in matrix.methods:
        for name in variant.encoders or ():
            if name not in encoders:
                raise unknown(f"encoder of {variant.name}", name, sorted(encoders))
    known = {variant.name: variant for variant in matrix.methods}
    for variant in matrix.methods:
        if variant.first_stage is None:
            continue
        if variant.first_stage not in known:
            raise unknown(f"first stage of {variant.name}", variant.first_stage, known)
        stage = known[variant.first_stage]
        if not set(variant.encoders or encoders) <= set(stage.encoders or encoders):
            raise ValueError(
                f"the first stage of {variant.name}, {stage.name}, does not run with all of its "
                "encoders"
            )
        if stage.first_stage is not None:
            raise ValueError(
                f"the first stage of {variant.name}, {variant.first_stage}, has one itself"
            )
