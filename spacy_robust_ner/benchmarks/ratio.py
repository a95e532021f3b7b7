"""A measured time as a share of another, beside what it may be."""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Ratio:
    """Two processor times, of which only the quotient means something on another machine.

    part (str): The part of the benchmark.
    encoder (str): "trf" or "cnn".
    what (str): What took the time.
    seconds (float): The time.
    base (str): What it is compared with.
    base_seconds (float): The time of that.
    limit (Optional[float]): The greatest quotient that passes; None for a figure without a limit.
    """

    part: str
    encoder: str
    what: str
    seconds: float
    base: str
    base_seconds: float
    limit: float | None = None

    @property
    def value(self) -> float:
        """RETURNS (float): The quotient."""
        return self.seconds / self.base_seconds

    @property
    def passed(self) -> bool | None:
        """RETURNS (Optional[bool]): Whether it is within the limit, if there is one."""
        return None if self.limit is None else self.value <= self.limit

    def to_dict(self) -> dict[str, Any]:
        """RETURNS (Dict[str, Any]): The figures as JSON-serializable data."""
        return {**asdict(self), "value": self.value, "passed": self.passed}
