"""The finished runs of an experiment, as the runner leaves them on disk."""

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ..errors import Errors

RESULTS_FILE = "results.jsonl"
HISTORY_FILE = "history.jsonl"
PREDICTIONS_FILE = "predictions.jsonl"

Result = dict[str, Any]
Entity = tuple[int, int, str]
Split = Literal["test", "train"]


@dataclass(frozen=True)
class Masking:
    """What was done to the labels of a training corpus.

    rate (float): The share of entities that lost their label.
    kind (Optional[str]): How they were chosen; None if the corpus was used as it is.
    """

    rate: float
    kind: str | None = None


@dataclass(frozen=True)
class Prediction:
    """A document with what is true and what was found, spans end exclusive.

    split (Split): Whether it is a test or a training document.
    words (List[str]): Its tokens.
    spaces (List[bool]): Whether a space follows each.
    gold (Set[Entity]): All true entities, the masked ones among them.
    masked (Set[Entity]): Those that had lost their label in training.
    predicted (Dict[Entity, Optional[float]]): What was found, with its probability if known;
        without what touches a token of which nothing is known.
    """

    split: Split
    words: list[str]
    spaces: list[bool]
    gold: frozenset[Entity]
    masked: frozenset[Entity]
    predicted: dict[Entity, float | None]


@dataclass(frozen=True)
class Run:
    """One finished run.

    result (Result): Its line of results.jsonl.
    directory (Path): Where its other files are.
    """

    result: Result
    directory: Path

    @property
    def masking(self) -> Masking:
        """RETURNS (Masking): Which version of the training corpus it had."""
        rate = float(self.result["mask_rate"])
        # Without masking it does not matter how it would have been done.
        return Masking(rate, self.result["mask_kind"] if rate else None)

    @property
    def f1(self) -> float:
        """RETURNS (float): Micro F1 on the test corpus."""
        f1: float = self.result["test"]["f1"]
        return f1

    def history(self) -> list[dict[str, Any]]:
        """RETURNS (List[Dict[str, Any]]): The evaluations during training; empty without a log."""
        return [line for _, line in _read_lines(self.directory / HISTORY_FILE)]

    def predictions(self) -> Iterator[Prediction]:
        """YIELDS (Prediction): The documents whose predictions were kept; none without a file."""
        path = self.directory / PREDICTIONS_FILE
        for number, line in _read_lines(path):
            try:
                yield _prediction(line)
            except (KeyError, TypeError, ValueError) as error:
                raise ValueError(
                    Errors.R221.format(path=path, line=number, reason=repr(error))
                ) from error


def read_runs(output: Path, wanted: Collection[str] | None = None) -> list[Run]:
    """Read the finished runs of an experiment.

    output (Path): The directory of the experiment.
    wanted (Optional[Collection[str]]): Names of runs; all if not given.
    RETURNS (List[Run]): The runs, in the order of the file.
    """
    path = output / RESULTS_FILE
    runs = []
    for number, result in _read_lines(path):
        missing = [name for name in _NEEDED if name not in result]
        if missing:
            reason = f"without {', '.join(missing)}"
            raise ValueError(Errors.R221.format(path=path, line=number, reason=reason))
        if wanted is None or result["cell"] in wanted:
            runs.append(Run(result, output / result["cell"]))
    if not runs:
        raise FileNotFoundError(Errors.R204.format(path=output))
    return runs


_NEEDED = (
    "cell",
    "dataset",
    "mask_rate",
    "mask_kind",
    "method",
    "variant",
    "title",
    "encoder",
    "seed",
    "overrides",
    "training_seconds",
    "dev_f1",
    "test",
    "recovery",
)


def _read_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    if not path.is_file():
        return
    with path.open(encoding="utf8") as lines:
        for number, line in enumerate(lines, 1):
            try:
                yield number, json.loads(line)
            except ValueError as error:
                raise ValueError(
                    Errors.R221.format(path=path, line=number, reason=error)
                ) from error


def _prediction(line: dict[str, Any]) -> Prediction:
    masked = _entities(line["masked"])
    words = [str(word) for word in line["words"]]
    spaces = [bool(space) for space in line["spaces"]]
    if len(words) != len(spaces):
        raise ValueError(f"{len(words)} words and {len(spaces)} spaces")
    missing = set(line.get("missing", ()))
    return Prediction(
        split=line["split"],
        words=words,
        spaces=spaces,
        gold=_entities(line["gold"]) | masked,
        masked=masked,
        predicted={
            (start, end, label): score
            for start, end, label, score in line["predicted"]
            if missing.isdisjoint(range(start, end))
        },
    )


def _entities(triples: list[tuple[int, int, str]]) -> frozenset[Entity]:
    return frozenset((start, end, label) for start, end, label in triples)
