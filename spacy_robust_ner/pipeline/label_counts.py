"""What one pass over the training examples tells: labels, sizes, and what is too wide."""

import warnings
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from spacy.training import Example

from ..candidates import CandidateTable
from ..errors import Errors, Warnings


@dataclass(frozen=True)
class LabelCounts:
    """labels (Dict[str, int]): Labeled entities by label.
    examples (int): Training examples.
    candidates (int): Candidate spans in them.
    too_wide (int): Labeled entities that are no candidates.
    """

    labels: dict[str, int]
    examples: int
    candidates: int
    too_wide: int

    @property
    def shares(self) -> dict[str, float]:
        """RETURNS (Dict[str, float]): Labeled entities by label, as shares of the candidates."""
        return {label: count / max(1, self.candidates) for label, count in self.labels.items()}


def count_labels(examples: Iterable[Example], *, name: str, max_width: int | None) -> LabelCounts:
    """Go through the training examples. Warns of entities that are too wide to be found.

    examples (Iterable[Example]): The training examples.
    name (str): The component's name, for messages.
    max_width (Optional[int]): Tokens in the widest candidate.
    RETURNS (LabelCounts): The counts.
    """
    labels: Counter[str] = Counter()
    n_examples = candidates = too_wide = 0
    for example in examples:
        n_examples += 1
        candidates += len(CandidateTable([len(example.reference)], max_width=max_width))
        for entity in example.reference.ents:
            labels[entity.label_] += 1
            too_wide += max_width is not None and len(entity) > max_width
    if too_wide:
        total = sum(labels.values())
        warnings.warn(
            Warnings.W100.format(
                count=too_wide,
                total=total,
                share=too_wide / total,
                max_width=max_width,
                name=name,
            ),
            stacklevel=2,
        )
    return LabelCounts(dict(labels), n_examples, candidates, too_wide)


def require_labels(labels: Iterable[str], *, name: str, examples: int) -> None:
    """Raise an error if there are no labels to learn."""
    if not list(labels):
        raise ValueError(Errors.R114.format(name=name, count=examples))
