"""The workers jobs run on: one per Spark executor, or this machine when Spark runs in local mode."""

from __future__ import annotations

import os
import socket
import uuid
from dataclasses import dataclass, field

__all__ = ["Worker", "Workers"]


@dataclass(frozen=True, slots=True)
class Worker:
    """One executor."""

    worker_id: str
    host: str
    port: int
    cores: int
    memory_bytes: int
    started: int
    path: str = ""
    extra: dict[str, int] = field(default_factory=dict)

    @property
    def endpoint(self) -> str:
        """Host and port."""
        return f"{self.host}:{self.port}"


class Workers:
    """All workers; asking costs nothing, since the list is refreshed by the driver."""

    def __init__(self, workers: list[Worker]) -> None:
        self._workers = workers

    @classmethod
    def local(cls, cores: int, started: int, port: int = 0) -> Workers:
        """This machine as the only worker."""
        host = "localhost"
        worker_id = f"{host}:{port}-{uuid.uuid5(uuid.NAMESPACE_DNS, socket.gethostname()).hex[:6]}"
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        return cls([Worker(worker_id, host, port, cores, memory, started)])

    def all(self) -> list[Worker]:
        """Every worker that is alive."""
        return list(self._workers)

    def find(self, worker_id: str) -> Worker | None:
        """The worker with this id."""
        return next((worker for worker in self._workers if worker.worker_id == worker_id), None)

    def replace(self, workers: list[Worker]) -> None:
        """Use this list from now on."""
        self._workers = list(workers)

    def of_subtask(self, index: int) -> Worker:
        """The worker a subtask is shown at: Spark may move subtasks, so this is where it would start."""
        return self._workers[index % len(self._workers)]
