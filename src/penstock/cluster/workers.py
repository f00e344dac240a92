"""The workers of jobs: one for each Spark executor, or this process if Spark runs in local mode."""

from __future__ import annotations

import os
import socket
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.runtime.job.executor_facts import ExecutorFacts

__all__ = ["Worker", "Workers"]


@dataclass(frozen=True, slots=True)
class Worker:
    """One executor, or the driver itself."""

    worker_id: str
    host: str
    port: int
    cores: int
    memory_bytes: int
    started: int
    path: str = ""
    managed_bytes: int = 0
    is_driver: bool = True
    """Whether the driver runs the tasks itself. Its logs, threads and metrics are then the worker's."""
    used: dict[str, int] = field(default_factory=dict)
    """The known metrics of `GET /taskmanagers/:id`."""
    collectors: list[dict[str, str | int]] = field(default_factory=list)

    @property
    def endpoint(self) -> str:
        """Host and port."""
        return f"{self.host}:{self.port}"


class Workers:
    """All workers. Access is cheap, since the driver refreshes the list."""

    def __init__(self, workers: list[Worker]) -> None:
        self._workers = workers

    @classmethod
    def local(cls, cores: int, started: int, port: int = 0) -> Workers:
        """Use this machine as the only worker."""
        host = "localhost"
        worker_id = f"{host}:{port}-{uuid.uuid5(uuid.NAMESPACE_DNS, socket.gethostname()).hex[:6]}"
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        return cls([Worker(worker_id, host, port, cores, memory, started)])

    def use_executors(self, executors: Iterable[ExecutorFacts]) -> None:
        """Replace this process with executors. Without executors, the list stays unchanged."""
        found = [_of_executor(facts) for facts in executors]
        if found:
            self._workers = found

    def all(self) -> list[Worker]:
        """Return all workers that are alive."""
        return list(self._workers)

    def find(self, worker_id: str) -> Worker | None:
        """Return the worker with this id."""
        return next((worker for worker in self._workers if worker.worker_id == worker_id), None)

    def of_subtask(self, index: int) -> Worker:
        """Return the worker to show for a subtask. Spark may move subtasks, so this is where it would start."""
        return self._workers[index % len(self._workers)]


def _of_executor(facts: ExecutorFacts) -> Worker:
    return Worker(
        f"{facts.host}:{facts.port}-{facts.executor_id}",
        facts.host,
        facts.port,
        facts.cores,
        facts.heap_max,
        facts.started,
        path=f"spark://executor-{facts.executor_id}@{facts.host}:{facts.port}",
        managed_bytes=facts.managed,
        is_driver=False,
        used={
            "heapUsed": facts.heap_used,
            "heapCommitted": facts.heap_used,
            "heapMax": facts.heap_max,
            "nonHeapUsed": facts.non_heap_used,
            "nonHeapCommitted": facts.non_heap_used,
            "directUsed": facts.direct_used,
            "directMax": facts.direct_used,
            "mappedUsed": facts.mapped_used,
            "mappedMax": facts.mapped_used,
        },
        collectors=[{"name": name, "count": count, "time": spent} for name, count, spent in facts.collections],
    )
