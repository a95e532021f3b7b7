"""Cells on the machines of a Ray cluster, which have the experiment's files in common."""

from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep
from typing import Any
from uuid import uuid4

from ..errors import Errors
from .jobs import Job, Outcome, Resources, refuse_job, run_job

_GRACE_SECONDS = 30


@dataclass(frozen=True)
class StopFile:
    """Reaches cells on all machines. Ray's own way to cancel tasks leaves them no time to end the
    processes that they have started.

    path (Path): The file, which is there if cells shall end.
    """

    path: Path

    def is_set(self) -> bool:
        """RETURNS (bool): Whether running cells shall end."""
        return self.path.exists()


class RayExecutor:
    """Cells as Ray tasks. Ray decides where and when each runs, and starts it again elsewhere if
    its machine fails.

    address (str): A running cluster ("auto" for the one of this machine), or "local" for a new one
        on this machine.
    gpu (bool): Whether each cell gets a GPU.
    threads (int): CPU cores a cell gets.
    """

    def __init__(self, address: str = "auto", *, gpu: bool = False, threads: int = 1) -> None:
        try:
            import ray
        except ImportError as error:
            raise ImportError(Errors.R210) from error
        self._ray: Any = ray
        self.gpu = gpu
        ray.init(address=address, log_to_driver=False)
        have = ray.cluster_resources()
        self.slots = int(have.get("GPU", 0) if gpu else have.get("CPU", 0) // threads)
        if not self.slots:
            wanted = "GPU" if gpu else f"machine with {threads} cores"
            ray.shutdown()
            raise ValueError(Errors.R211.format(address=address, wanted=wanted))
        self._resources = Resources(threads)
        self._task: Any = ray.remote(num_cpus=threads, num_gpus=int(gpu))(run_job)
        self._running: dict[Any, Job] = {}
        self._stop: StopFile | None = None

    def submit(self, job: Job) -> None:
        """job (Job): A cell to run as soon as there is room."""
        if self._stop is None:
            self._stop = StopFile(job.output / f".stop-{uuid4().hex}")
        reference = self._task.options(name=job.name).remote(job, self._resources, self._stop)
        self._running[reference] = job

    def next_finished(self, timeout: float | None = None) -> tuple[Job, Outcome] | None:
        """RETURNS (Optional[Tuple[Job, Outcome]]): The next of the submitted cells that ends."""
        ended, _ = self._ray.wait(list(self._running), num_returns=1, timeout=timeout)
        if not ended:
            return None
        (reference,) = ended
        job = self._running.pop(reference)
        try:
            outcome: Outcome = self._ray.get(reference)
        except self._ray.exceptions.RayError as error:
            outcome = refuse_job(job, f"Ray could not run it: {error}")
        return job, outcome

    def stop(self) -> None:
        """End what is running, and start nothing more."""
        if self._stop is not None and self._running:
            self._stop.path.touch()
        deadline = monotonic() + _GRACE_SECONDS
        while monotonic() < deadline and any(j.staging.exists() for j in self._running.values()):
            sleep(0.2)
        if self._stop is not None:
            self._stop.path.unlink(missing_ok=True)
        self._ray.shutdown()
