"""Where cells run: some at a time on the CPU, or one at a time on each GPU."""

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from queue import SimpleQueue
from typing import Protocol

from .jobs import Job, Outcome, Resources, StopSignal, run_job


class Executor(Protocol):
    """Runs cells in an order of its own."""

    @property
    def slots(self) -> int:
        """RETURNS (int): How many cells run at a time."""
        ...

    @property
    def gpu(self) -> bool:
        """RETURNS (bool): Whether each cell has a GPU."""
        ...

    def submit(self, job: Job) -> None:
        """job (Job): A cell to run as soon as there is room."""
        ...

    def next_finished(self, timeout: float | None = None) -> tuple[Job, Outcome] | None:
        """Wait for the next of the submitted cells that ends.

        timeout (Optional[float]): Seconds to wait at most.
        RETURNS (Optional[Tuple[Job, Outcome]]): The cell; None if none has ended by then.
        """
        ...

    def stop(self) -> None:
        """End what is running, and start nothing more."""
        ...


class LocalExecutor:
    """Cells on this machine.

    workers (int): Cells at a time on the CPU; they share its cores.
    gpu_ids (Sequence[int]): GPUs to use instead, with one cell at a time each.
    threads (Optional[int]): CPU threads a cell; by default the cells share all cores.
    run (Callable[[Job, Resources, StopSignal], Outcome]): Runs a cell.
    """

    def __init__(
        self,
        *,
        workers: int = 1,
        gpu_ids: Sequence[int] = (),
        threads: int | None = None,
        run: Callable[[Job, Resources, StopSignal], Outcome] = run_job,
    ) -> None:
        self.slots = len(gpu_ids) or workers
        self.gpu = bool(gpu_ids)
        self._run = run
        self._stop = threading.Event()
        self._pool = ThreadPoolExecutor(self.slots)
        self._running: dict[Future[Outcome], Job] = {}
        self._free: SimpleQueue[Resources] = SimpleQueue()
        threads = threads or max(1, available_cores() // self.slots)
        for slot in range(self.slots):
            environment = visible_gpu(gpu_ids[slot]) if gpu_ids else {}
            self._free.put(Resources(threads, environment))

    def submit(self, job: Job) -> None:
        """job (Job): A cell to run as soon as there is room."""
        self._running[self._pool.submit(self._run_in_slot, job)] = job

    def next_finished(self, timeout: float | None = None) -> tuple[Job, Outcome] | None:
        """RETURNS (Optional[Tuple[Job, Outcome]]): The next of the submitted cells that ends."""
        done, _ = wait(self._running, timeout=timeout, return_when=FIRST_COMPLETED)
        if not done:
            return None
        future = done.pop()
        return self._running.pop(future), future.result()

    def stop(self) -> None:
        """End what is running, and start nothing more."""
        self._stop.set()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _run_in_slot(self, job: Job) -> Outcome:
        resources = self._free.get()
        try:
            return self._run(job, resources, self._stop)
        finally:
            self._free.put(resources)


def available_cores() -> int:
    """RETURNS (int): The CPU cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def visible_gpu(gpu_id: int) -> dict[str, str]:
    """Choose the one GPU that a process sees, which is number 0 to it.

    gpu_id (int): The GPU, counted among those that this process sees.
    RETURNS (Dict[str, str]): The environment.
    """
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
    chosen = visible[gpu_id] if gpu_id < len(visible) and visible != [""] else str(gpu_id)
    return {"CUDA_VISIBLE_DEVICES": chosen}
