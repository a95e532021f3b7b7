"""Processor time on one thread, which says more than the clock on a machine that is busy."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from statistics import median

import torch


@contextmanager
def one_thread() -> Iterator[None]:
    """Let PyTorch use a single thread, and afterwards as many as before."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def cpu_seconds(
    jobs: Mapping[str, Callable[[], object]], *, repetitions: int, warm_up: int = 1
) -> dict[str, float]:
    """Time several jobs beside each other: each once in every round, so that whatever slows the
    machine down for a while slows all of them down.

    jobs (Mapping[str, Callable]): The jobs by name.
    repetitions (int): Rounds that count.
    warm_up (int): Rounds before, which do not count.
    RETURNS (Dict[str, float]): The median of the processor seconds of each job.
    """
    seconds: dict[str, list[float]] = {name: [] for name in jobs}
    for number in range(warm_up + repetitions):
        for name, job in jobs.items():
            start = time.process_time()
            job()
            passed = time.process_time() - start
            if number >= warm_up:
                seconds[name].append(passed)
    return {name: median(values) for name, values in seconds.items()}
