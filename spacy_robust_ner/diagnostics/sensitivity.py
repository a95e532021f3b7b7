"""Runs that differ in one setting only: how much does its value matter?"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .comparison import Section
from .results import Masking, Run


@dataclass(frozen=True)
class Sensitivity:
    """A setting of a method, at several values.

    method (str): The method's name.
    title (str): What tables call it.
    setting (str): The config setting, in dotted notation.
    lines (Dict[Masking, Dict[float, List[Run]]]): For each version of the training data, the runs
        of each value.
    others (Dict[str, Any]): The other settings that vary between variants of the method.
    """

    method: str
    title: str
    setting: str
    lines: dict[Masking, dict[float, list[Run]]]
    others: dict[str, Any]

    @property
    def name(self) -> str:
        """RETURNS (str): The setting without the block that it is in."""
        return ".".join(self.setting.split(".")[-2:])


def find_sensitivities(section: Section) -> list[Sensitivity]:
    """Find the settings of which a section holds several values, all else being equal.

    section (Section): The runs.
    RETURNS (List[Sensitivity]): One entry for each setting, and for each combination of the other
        settings that vary.
    """
    found = []
    for method in dict.fromkeys(row.method for row in section.rows):
        runs = [
            run for (row, _), own in section.cells.items() if row.method == method for run in own
        ]
        for setting in _varying(runs):
            valued = [run for run in runs if _is_number(run.result["overrides"].get(setting))]
            others = [name for name in _varying(valued) if name != setting]
            groups: dict[str, list[Run]] = {}
            for run in valued:
                groups.setdefault(_values(run, others), []).append(run)
            for key, own in groups.items():
                lines = _lines(own, setting)
                if lines:
                    values = {n: v for n, v in json.loads(key).items() if v is not None}
                    title = _method_title(section, method)
                    found.append(Sensitivity(method, title, setting, lines, values))
    return found


def _varying(runs: Sequence[Run]) -> list[str]:
    names = {name for run in runs for name in run.result["overrides"]}
    return sorted(
        name
        for name in names
        if len({json.dumps(run.result["overrides"].get(name)) for run in runs}) > 1
    )


def _values(run: Run, names: Sequence[str]) -> str:
    return json.dumps({name: run.result["overrides"].get(name) for name in names})


def _lines(runs: Sequence[Run], setting: str) -> dict[Masking, dict[float, list[Run]]]:
    lines: dict[Masking, dict[float, list[Run]]] = {}
    for run in runs:
        value = float(run.result["overrides"][setting])
        lines.setdefault(run.masking, {}).setdefault(value, []).append(run)
    several = {masking: values for masking, values in lines.items() if len(values) > 1}
    return dict(sorted(several.items(), key=lambda item: (item[0].rate, item[0].kind or "")))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _method_title(section: Section, method: str) -> str:
    plain = [row.title for row in section.rows if row.variant == row.method == method]
    return plain[0] if plain else method
