from pathlib import Path

import pytest

from spacy_robust_ner.experiments.matrix import Dataset, EncoderChoice, Matrix, Part, Variant
from spacy_robust_ner.experiments.progress import Progress

COST = {"fast": 10.0, "slow": 100.0}


def make_cells(seeds=6):
    data = Dataset("x", (Part(Path("t")),), dev=Path("d"), test=Path("e"))
    variants = [Variant(name, name, name) for name in COST]
    encoders = [EncoderChoice("cnn", "cnn")]
    return list(Matrix("", [data], variants, encoders=encoders, seeds=range(seeds)).cells())


def simulate(cells, slots):
    """Run cells in their order on a clock of our own; yields (time, remaining) at each end."""
    now = 0.0
    progress = Progress(cells, slots, clock=lambda: now)
    assert progress.remaining() is None
    queue, running = list(cells), []
    while queue or running:
        while queue and len(running) < slots:
            cell = queue.pop(0)
            running.append((now + COST[cell.variant.name], cell))
        running.sort(key=lambda item: item[0])
        now, cell = running.pop(0)
        progress.end(cell.name, COST[cell.variant.name])
        yield now, progress.remaining()


@pytest.mark.parametrize("slots", [1, 2, 3])
def test_estimate_is_right_once_each_kind_was_seen(slots):
    cells = sorted(make_cells(), key=lambda cell: cell.seed)
    course = list(simulate(cells, slots))
    end = course[-1][0]
    assert course[-1][1] == 0.0
    for now, remaining in course[2 * slots : -slots]:
        assert remaining == pytest.approx(end - now, abs=max(COST.values()))
    if slots == 1:
        for now, remaining in course[1:]:
            assert remaining == pytest.approx(end - now)


def test_kinds_not_seen_yet_count_as_the_mean():
    cells = make_cells(seeds=2)
    first = next(simulate(cells, 1))
    # One fast cell took 10 seconds, and three cells are left.
    assert first == (10.0, pytest.approx(30.0))


def test_running_cells_are_partly_done():
    cells = [cell for cell in make_cells(seeds=4) if cell.variant.name == "slow"]
    now = 0.0
    progress = Progress(cells, 2, clock=lambda: now)
    now = 100.0
    progress.end(cells[0].name, 100.0)
    # The second one is as good as finished, the other two are open.
    assert progress.remaining() == pytest.approx(100.0)
    assert (progress.done, progress.total) == (1, 4)


def test_estimate_before_the_first_cell_has_finished():
    slow, *others = [cell for cell in make_cells(seeds=4) if cell.variant.name == "slow"]
    now = 0.0
    progress = Progress([slow, *others], 1, clock=lambda: now)
    progress.watch({slow.name: 0.0})
    assert (progress.running, progress.remaining()) == ([0.0], None)
    now = 30.0
    progress.watch({slow.name: 0.25})
    # 30 of 120 seconds are over.
    assert progress.remaining() == pytest.approx(90 + 3 * 120)
    now = 100.0
    progress.end(slow.name, 100.0)
    assert progress.running == []
    assert progress.remaining() == pytest.approx(300.0)
    progress.watch({others[0].name: 0.0})
    now = 150.0
    progress.watch({others[0].name: 0.25})
    # It takes twice as long as the first one.
    assert progress.remaining() == pytest.approx(150 + 2 * 150)


def test_failures_tell_nothing():
    cells = [cell for cell in make_cells(seeds=4) if cell.variant.name == "slow"]
    now = 0.0
    progress = Progress(cells, 1, clock=lambda: now)
    now = 1.0
    progress.end(cells[0].name, 1.0, finished=False)
    assert progress.remaining() is None
    now = 101.0
    progress.end(cells[1].name, 100.0)
    assert progress.remaining() == pytest.approx(200.0)


def test_overdue_cells_do_not_lead_below_zero():
    cells = make_cells(seeds=1)
    now = 0.0
    progress = Progress(cells, 2, clock=lambda: now)
    progress.end(cells[0].name, 10.0)
    now = 1000.0
    assert progress.remaining() == 0.0
