"""Figures of publications, to stand beside our own where the setting is the same.

They are in ``published.csv``: F1 by dataset, share of masked entities, method and encoder, with the
table that they come from. Datasets whose name ends in "distant" are annotated by a
knowledge base, those in "annotated" are the human part of a dataset that also has a distant one.
"""

import csv
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal

from .comparison import Row, Section
from .results import Masking


@dataclass(frozen=True)
class Published:
    """A figure of a publication.

    dataset (str): The dataset.
    mask_rate (float): The share of entities that lost their label, each drawn for itself.
    method (str): The method, by our name.
    variant (str): The variant of the method, by the name that our experiments give it.
    split (Literal): Which data the figure is of.
    encoder (str): The encoder, as the publication calls it.
    f1 (float): F1 in percent.
    source (str): Publication and table.
    """

    dataset: str
    mask_rate: float
    method: str
    variant: str
    split: Literal["test", "dev"]
    encoder: str
    f1: float
    source: str


@cache
def read_published() -> tuple[Published, ...]:
    """RETURNS (Tuple[Published, ...]): All figures that the package knows."""
    text = files(__package__).joinpath("published.csv").read_text(encoding="utf8")
    return tuple(
        Published(
            dataset=row["dataset"],
            mask_rate=float(row["mask_rate"]),
            method=row["method"],
            variant=row["variant"],
            split="dev" if row["split"] == "dev" else "test",
            encoder=row["encoder"],
            f1=float(row["f1"]),
            source=row["source"],
        )
        for row in csv.DictReader(text.splitlines())
    )


def dataset_key(name: str) -> str:
    """RETURNS (str): A dataset's name without the differences between its usual spellings."""
    key = re.sub("[^a-z0-9]", "", name.lower())
    key = re.sub("^conll03", "conll2003", key)
    return re.sub("(ds|distantly)$", "distant", key)


def find_published(
    dataset: str, masking: Masking, method: str, variant: str | None = None
) -> list[Published]:
    """Find the figures of the same setting.

    dataset (str): The name of our dataset.
    masking (Masking): What its training data lost.
    method (str): Our method.
    variant (Optional[str]): Its variant; the method without changed settings if not given.
    RETURNS (List[Published]): The figures, whatever their encoder.
    """
    if masking.rate and masking.kind not in (None, "entity"):
        return []
    key = dataset_key(dataset)
    return [
        entry
        for entry in read_published()
        if dataset_key(entry.dataset) == key
        and (entry.method, entry.variant) == (method, variant or method)
        and abs(entry.mask_rate - masking.rate) < 1e-9
    ]


def published_beside(section: Section) -> list[tuple[Row, Masking, Published]]:
    """RETURNS (List[Tuple[Row, Masking, Published]]): Each of our settings that was published,
    with the publication.
    """
    return [
        (row, column, entry)
        for row in section.rows
        for column in section.columns
        if section.runs(row, column)
        for entry in find_published(section.dataset, column, row.method, row.variant)
    ]
