"""How long an experiment still takes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from statistics import mean
from time import monotonic

from .matrix import Cell


@dataclass
class Progress:
    """Estimates the remaining time from the cells that finished in this run, and from how far the
    running ones are. Kept cells tell nothing, since they may be from another machine; neither do
    failed ones.

    cells (List[Cell]): The cells to run.
    slots (int): How many of them run at a time.
    clock (Callable[[], float]): The time in seconds.
    """

    cells: list[Cell]
    slots: int
    clock: Callable[[], float] = monotonic
    _ended: dict[str, float] = field(default_factory=dict)
    _finished: dict[str, float] = field(default_factory=dict)
    _started_at: dict[str, float] = field(default_factory=dict)
    _running: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._started = self.clock()

    @property
    def done(self) -> int:
        """RETURNS (int): How many cells have ended."""
        return len(self._ended)

    @property
    def total(self) -> int:
        """RETURNS (int): How many cells there are."""
        return len(self.cells)

    @property
    def running(self) -> list[float]:
        """RETURNS (List[float]): How far each running cell is, as a share of its training."""
        return list(self._running.values())

    def watch(self, shares: Mapping[str, float]) -> None:
        """Note how far the running cells are.

        shares (Mapping[str, float]): The share of its training that each of them has behind it.
        """
        for name in shares:
            self._started_at.setdefault(name, self.clock())
        self._running = dict(shares)

    def end(self, name: str, seconds: float, *, finished: bool = True) -> None:
        """Note that a cell has ended.

        name (str): The cell.
        seconds (float): How long it took.
        finished (bool): Whether it has a result.
        """
        self._ended[name] = seconds
        self._running.pop(name, None)
        if finished:
            self._finished[name] = seconds

    def remaining(self) -> float | None:
        """RETURNS (Optional[float]): Seconds to the end; None as long as nothing is known."""
        open_cells = [cell for cell in self.cells if cell.name not in self._ended]
        if not open_cells:
            return 0.0
        known = {**self._foreseen(), **self._finished}
        if not known:
            return None
        work = sum(self._expected(cell, known) for cell in open_cells)
        # What the slots have done beyond the ended cells, they have done for running ones.
        busy = self.slots * (self.clock() - self._started) - sum(self._ended.values())
        slots = min(self.slots, len(open_cells))
        return max(0.0, work - max(0.0, busy)) / slots

    def _foreseen(self) -> dict[str, float]:
        """What running cells will have taken, if they go on as they have begun."""
        return {
            name: (self.clock() - self._started_at[name]) / share
            for name, share in self._running.items()
            if share
        }

    def _expected(self, cell: Cell, known: Mapping[str, float]) -> float:
        """What the cell itself takes, or cells of the same kind, or the most similar ones."""
        others = [other for other in self.cells if other.name in known]
        for kind in _KINDS:
            alike = [known[other.name] for other in others if kind(other) == kind(cell)]
            if alike:
                return mean(alike)
        return mean(known.values())


_KINDS: tuple[Callable[[Cell], object], ...] = (
    lambda cell: cell.name,
    lambda cell: (cell.dataset.name, cell.variant.name, cell.encoder.name),
    lambda cell: (cell.dataset.name, cell.variant.method, cell.encoder.name),
    lambda cell: (cell.variant.method, cell.encoder.name),
    lambda cell: cell.encoder.name,
)
