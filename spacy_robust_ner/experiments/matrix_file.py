"""Read an experiment from a YAML or TOML file, and say what is wrong with it."""

import itertools
import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, get_args

import srsly

from ..errors import Errors
from ..recipes import ENCODERS, METHODS
from .matrix import Dataset, EncoderChoice, Masking, MaskKind, Matrix, Part, Variant

_NAME = re.compile(r"[\w.+=,]+(-[\w.+=,]+)*")
_NOT_IN_NAMES = re.compile(r"[^\w.+=,]+")


def load_matrix(path: Path) -> Matrix:
    """Read an experiment file.

    path (Path): A YAML or TOML file with the fields of Matrix.
    RETURNS (Matrix): The experiment; anything unknown or of the wrong kind is an error.
    """
    if not path.is_file():
        raise FileNotFoundError(Errors.R201.format(path=path))
    try:
        return _Reader().matrix(_read(path), path.stem)
    except ValueError as error:
        raise ValueError(Errors.R202.format(path=path, reason=error)) from error


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
        known = {
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
        _check_fields(data, "the file", known, required=("datasets", "methods"))
        masking = [m for entry in data.get("masking", [None]) for m in self.masking(entry)]
        methods = [v for entry in data["methods"] for v in self.variants(entry)]
        methods = list(_varied(methods, data.get("vary", {})))
        matrix = Matrix(
            title=data.get("title", stem),
            datasets=[self.dataset(entry) for entry in data["datasets"]],
            # Nothing to mask is the same for every kind.
            masking=list(dict.fromkeys(masking)),
            methods=methods,
            encoders=[self.encoder(entry) for entry in data.get("encoders", ["cnn"])],
            seeds=[_seed(seed) for seed in data.get("seeds", [0])],
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
            "encoders": list,
        }
        _check_fields(entry, "a dataset", known, required=("name", "train", "dev", "test"))
        train = entry["train"]
        parts = [self.part(part) for part in (train if isinstance(train, list) else [train])]
        encoders = entry.get("encoders")
        return Dataset(
            name=_name(entry["name"]),
            train=tuple(parts),
            dev=Path(entry["dev"]),
            test=Path(entry["test"]),
            lang=entry.get("lang", "en"),
            gold=Path(entry["gold"]) if "gold" in entry else None,
            mask_rate=_rate(entry.get("mask_rate", 0.0)),
            encoders=None if encoders is None else tuple(self.encoder(e) for e in encoders),
        )

    def part(self, entry: Any) -> Part:
        if isinstance(entry, str):
            return Part(Path(entry))
        known = {"path": str, "complete": bool}
        _check_fields(entry, "a part of the training data", known, required=("path",))
        return Part(Path(entry["path"]), entry.get("complete"))

    def masking(self, entry: Any) -> Iterable[Masking | None]:
        if entry is None:
            return [None]
        if not isinstance(entry, dict):
            entry = {"rate": entry}
        known = {"rate": object, "kind": (str, list), "exact": bool, "seed": int}
        _check_fields(entry, "an entry of masking", known, required=("rate",))
        found: list[Masking | None] = []
        for kind, rate in itertools.product(
            _list(entry.get("kind", "entity")), _list(entry["rate"])
        ):
            if kind not in get_args(MaskKind):
                raise _unknown("masking kind", kind, get_args(MaskKind))
            masking = Masking(_rate(rate), kind, entry.get("exact", False), entry.get("seed", 0))
            found.append(masking if masking.rate else None)
        return found

    def variants(self, entry: Any) -> Iterable[Variant]:
        if isinstance(entry, str):
            entry = {"method": entry}
        known = {
            "method": str,
            "name": str,
            "title": str,
            "overrides": dict,
            "vary": dict,
            "first_stage": str,
        }
        _check_fields(entry, "a method", known, required=("method",))
        method = entry["method"]
        if method not in METHODS:
            raise _unknown("method", method, METHODS)
        variant = Variant(
            method=method,
            name=_name(entry.get("name", method)),
            title=entry.get("title", METHODS[method].title),
            overrides=dict(entry.get("overrides", {})),
            first_stage=entry.get("first_stage"),
        )
        return _varied([variant], entry.get("vary", {}))

    def encoder(self, entry: Any) -> EncoderChoice:
        if isinstance(entry, str):
            entry = {"encoder": entry}
        known = {"encoder": str, "name": str, "overrides": dict}
        _check_fields(entry, "an encoder", known, required=("encoder",))
        encoder = entry["encoder"]
        if encoder not in ENCODERS:
            raise _unknown("encoder", encoder, ENCODERS)
        return EncoderChoice(
            encoder, _name(entry.get("name", encoder)), dict(entry.get("overrides", {}))
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
            yield Variant(
                method=variant.method,
                name="-".join([variant.name, *(_slug(f"{k}={v}") for k, v in shown.items())]),
                title=", ".join([variant.title, *(f"{k} = {v}" for k, v in shown.items())]),
                overrides={**variant.overrides, **chosen},
                varied={**variant.varied, **chosen},
                first_stage=variant.first_stage,
            )


def _check_fields(
    data: Any, what: str, known: Mapping[str, Any], *, required: tuple[str, ...]
) -> None:
    if not isinstance(data, dict):
        raise ValueError(f"{what} should be a mapping with {', '.join(known)}, not {data!r}")
    for name in required:
        if name not in data:
            raise ValueError(f"{what} lacks the field '{name}': {dict(data)!r}")
    for name, value in data.items():
        if name not in known:
            raise _unknown(f"field of {what}", name, known)
        kinds = known[name] if isinstance(known[name], tuple) else (known[name],)
        # True is an int to Python, but not to a reader of the file.
        if not isinstance(value, kinds) or (isinstance(value, bool) and int in kinds):
            names = " or ".join(kind.__name__ for kind in kinds)
            raise ValueError(f"'{name}' of {what} should be a {names}, not {value!r}")


def _check_matrix(matrix: Matrix) -> None:
    _check_unique("datasets", [dataset.name for dataset in matrix.datasets])
    _check_unique("methods", [variant.name for variant in matrix.methods])
    _check_unique("encoders", [encoder.name for encoder in matrix.encoders])
    for dataset in matrix.datasets:
        if dataset.encoders is not None:
            _check_unique(f"encoders of {dataset.name}", [e.name for e in dataset.encoders])
    _check_unique("seeds", [str(seed) for seed in matrix.seeds])
    known = {variant.name: variant for variant in matrix.methods}
    for variant in matrix.methods:
        if variant.first_stage is None:
            continue
        if variant.first_stage not in known:
            raise _unknown(f"first stage of {variant.name}", variant.first_stage, known)
        if known[variant.first_stage].first_stage is not None:
            raise ValueError(
                f"the first stage of {variant.name}, {variant.first_stage}, has one itself"
            )


def _check_unique(kind: str, names: list[str]) -> None:
    if not names:
        raise ValueError(f"'{kind}' is empty")
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ValueError(f"'{twice[0]}' comes twice in {kind}: give one of them another 'name'")


def _unknown(kind: str, value: Any, known: Iterable[str]) -> ValueError:
    return ValueError(f"unknown {kind} '{value}'; known: {', '.join(known)}")


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _rate(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ValueError(
            f"the rate {value!r} is no share between 0 and 1. For 80 percent, write 0.8"
        )
    return float(value)


def _seed(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"the seed {value!r} is not a whole number")
    return value


def _name(value: str) -> str:
    if not _NAME.fullmatch(value):
        raise ValueError(
            f"'{value}' can't be the name of a directory: use letters, digits and single hyphens"
        )
    return value


def _slug(value: str) -> str:
    return _NOT_IN_NAMES.sub("-", value).strip("-")
