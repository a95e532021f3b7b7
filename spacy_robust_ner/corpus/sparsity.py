"""How many entities a document of a given length has, against the square root of its length.

Negative sampling is safe where entities are sparse: m <= sqrt(n) for m entities and n tokens.
"""

import math
from dataclasses import asdict, dataclass, field
from typing import Any

MIN_CASES = 20


@dataclass
class LengthGroup:
    """The documents of one length, by sums that suffice for mean and deviation."""

    documents: int = 0
    entities: int = 0
    squares: int = 0

    def add(self, entities: int) -> None:
        """entities (int): The entity count of one more document."""
        self.documents += 1
        self.entities += entities
        self.squares += entities**2

    @property
    def mean(self) -> float:
        """RETURNS (float): Entities a document."""
        return self.entities / self.documents

    @property
    def deviation(self) -> float:
        """RETURNS (float): The standard deviation of the entity counts, as of a population."""
        # In integers until the root: the difference of two large squares would lose its digits.
        return math.sqrt(self.documents * self.squares - self.entities**2) / self.documents


@dataclass(frozen=True)
class SparsityPoint:
    length: int
    documents: int
    mean: float
    deviation: float
    root: float


@dataclass
class Sparsity:
    """Entity counts by document length.

    groups (Dict[int, LengthGroup]): The documents by their number of tokens.
    violations (int): Documents with more entities than the root of their length.
    """

    groups: dict[int, LengthGroup] = field(default_factory=dict)
    violations: int = 0

    def add(self, length: int, entities: int) -> None:
        """Count a document.

        length (int): Its tokens.
        entities (int): Its entities.
        """
        self.groups.setdefault(length, LengthGroup()).add(entities)
        self.violations += entities**2 > length

    @property
    def documents(self) -> int:
        """RETURNS (int): All documents."""
        return sum(group.documents for group in self.groups.values())

    @property
    def violation_share(self) -> float:
        """RETURNS (float): The share of documents with m > sqrt(n)."""
        return self.violations / self.documents if self.groups else 0.0

    def points(self, *, min_cases: int = MIN_CASES) -> list[SparsityPoint]:
        """List the lengths with enough documents to speak of a mean.

        min_cases (int): Leave lengths with fewer documents out.
        RETURNS (List[SparsityPoint]): By rising length.
        """
        return [
            SparsityPoint(length, group.documents, group.mean, group.deviation, math.sqrt(length))
            for length, group in sorted(self.groups.items())
            if group.documents >= min_cases
        ]

    def lengths_above_root(self, *, min_cases: int = MIN_CASES) -> list[int]:
        """RETURNS (List[int]): The lengths whose mean entity count exceeds the root."""
        return [p.length for p in self.points(min_cases=min_cases) if p.mean > p.root]

    def as_dict(self) -> dict[str, Any]:
        """RETURNS (Dict[str, Any]): JSON-serializable."""
        return {
            "violations": self.violations,
            "violation_share": self.violation_share,
            "min_cases": MIN_CASES,
            "lengths_above_root": self.lengths_above_root(),
            "points": [asdict(point) for point in self.points()],
        }
