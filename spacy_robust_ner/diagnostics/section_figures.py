"""What the predictions of a section's runs say: differences, probabilities, kinds of errors."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from .analysis import RunAnalysis
from .bootstrap import Difference, paired_differences
from .comparison import Row, Section
from .error_types import Kind
from .reliability import Reliability, measure_reliability
from .results import Masking, Split

Setting = tuple[Row, Masking]
# The analysis of each run that kept its predictions, by name.
Analyses = Mapping[str, RunAnalysis]


@dataclass
class SectionFigures:
    """Figures of the settings of a section; settings without predictions are not in them.

    naive (Dict[Setting, Row]): The naive model that a setting is compared with.
    differences (Dict[Setting, Difference]): The difference to it.
    reliability (Dict[Setting, Reliability]): Of those whose entities have probabilities.
    kinds (Dict[Tuple[Setting, Split], Counter[Kind]]): Errors of all seeds together.
    """

    naive: dict[Setting, Row] = field(default_factory=dict)
    differences: dict[Setting, Difference] = field(default_factory=dict)
    reliability: dict[Setting, Reliability] = field(default_factory=dict)
    kinds: dict[tuple[Setting, Split], Counter[Kind]] = field(default_factory=dict)


def measure_section(section: Section, analyses: Analyses, *, seed: int = 0) -> SectionFigures:
    """Compute the figures of a section.

    section (Section): The runs.
    analyses (Analyses): Their predictions.
    seed (int): The seed of the bootstrap.
    RETURNS (SectionFigures): The figures.
    """
    figures = SectionFigures()
    for column in section.columns:
        known: dict[str, list[RunAnalysis]] = {}
        for row in section.rows:
            own = [
                analyses[run.result["cell"]]
                for run in section.runs(row, column)
                if run.result["cell"] in analyses
            ]
            if own:
                known[row.variant] = own
                _add_errors(figures, (row, column), own)
        _add_differences(figures, section, column, known, seed)
    return figures


def _add_errors(figures: SectionFigures, setting: Setting, own: list[RunAnalysis]) -> None:
    scores = np.concatenate([analysis.scores for analysis in own])
    if len(scores):
        correct = np.concatenate([analysis.correct for analysis in own])
        figures.reliability[setting] = measure_reliability(scores, correct)
    for analysis in own:
        for split, counts in analysis.kinds.items():
            figures.kinds.setdefault((setting, split), Counter()).update(counts)


def _add_differences(
    figures: SectionFigures,
    section: Section,
    column: Masking,
    known: dict[str, list[RunAnalysis]],
    seed: int,
) -> None:
    rows = {row.variant: row for row in section.rows}
    reference = {}
    for variant, own in known.items():
        naive = section.naive(rows[variant], column)
        if naive is None or naive.variant not in known:
            continue
        figures.naive[rows[variant], column] = naive
        # Only on the same documents a difference can be paired.
        documents = {analysis.documents for analysis in (*own, *known[naive.variant])}
        if naive.variant != variant and len(documents) == 1:
            reference[variant] = naive.variant
    compared = {*reference, *reference.values()}
    counts = {
        name: np.sum([analysis.counts for analysis in known[name]], axis=0) for name in compared
    }
    for variant, difference in paired_differences(counts, reference, seed=seed).items():
        figures.differences[rows[variant], column] = difference
