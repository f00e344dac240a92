"""`/taskmanagers`: the workers, their memory, and their jobs."""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

from penstock.cluster.monitored_job import MonitoredJob, now_ms
from penstock.cluster.rest.jobs import Json
from penstock.cluster.rest.process_files import process_metrics
from penstock.cluster.workers import Worker, Workers
from penstock.common.job_status import JobStatus

__all__ = ["task_manager_details", "task_managers", "worker_metrics"]

_MB = 1 << 20
_MEMORY_METRICS = (
    *(f"{kind}{part}" for kind in ("heap", "nonHeap") for part in ("Used", "Committed", "Max")),
    *(f"{kind}{part}" for kind in ("direct", "mapped") for part in ("Count", "Used", "Max")),
    *(f"nettyShuffleMemory{part}" for part in ("Available", "Used", "Total")),
    *(f"nettyShuffleMemorySegments{part}" for part in ("Available", "Used", "Total")),
)


def task_managers(workers: Workers, jobs: list[MonitoredJob]) -> Json:
    """`GET /taskmanagers`, one for each Spark executor."""
    return {"taskmanagers": [_task_manager(worker, _assigned(worker, workers, jobs)) for worker in workers.all()]}


def task_manager_details(worker: Worker, workers: Workers, jobs: list[MonitoredJob]) -> Json:
    """`GET /taskmanagers/:id`."""
    assigned = _assigned(worker, workers, jobs)
    metrics: dict[str, Any] = {**dict.fromkeys(_MEMORY_METRICS, 0), **worker.used}
    return {
        **_task_manager(worker, assigned),
        "metrics": {**metrics, "garbageCollectors": worker.collectors},
        "allocatedSlots": [
            {"jobId": job.job_id, "resource": _resource(worker, 1 / worker.cores), "assignedTasks": tasks}
            for job, slots in assigned
            for tasks in slots
        ],
    }


def worker_metrics(worker: Worker) -> dict[str, Any]:
    """`GET /taskmanagers/:id/metrics`."""
    if worker.is_driver:
        return process_metrics()
    used = worker.used
    return {
        "Status.JVM.Memory.Heap.Used": used["heapUsed"],
        "Status.JVM.Memory.Heap.Committed": used["heapCommitted"],
        "Status.JVM.Memory.Heap.Max": used["heapMax"],
        "Status.JVM.Memory.NonHeap.Used": used["nonHeapUsed"],
        "Status.JVM.Memory.Direct.MemoryUsed": used["directUsed"],
        "Status.JVM.Memory.Mapped.MemoryUsed": used["mappedUsed"],
        "Status.Flink.Memory.Managed.Total": worker.managed_bytes,
        **{f"Status.JVM.GarbageCollector.{one['name']}.Count": one["count"] for one in worker.collectors},
        **{f"Status.JVM.GarbageCollector.{one['name']}.Time": one["time"] for one in worker.collectors},
    }


def _assigned(worker: Worker, workers: Workers, jobs: list[MonitoredJob]) -> list[tuple[MonitoredJob, list[int]]]:
    """Return how many tasks each running job has in each slot there. A slot has one subtask of each task."""
    found = []
    for job in jobs:
        if job.status is JobStatus.RUNNING:
            slots: Counter[int] = Counter()
            for vertex in job.graph.vertices:
                slots.update(i for i in range(vertex.parallelism) if workers.of_subtask(i) is worker)
            if slots:
                found.append((job, [slots[index] for index in sorted(slots)]))
    return found


def _task_manager(worker: Worker, assigned: list[tuple[MonitoredJob, list[int]]]) -> Json:
    """Return a worker. Spark assigns cores, not slots, so jobs may have more subtasks than slots."""
    slots = [tasks for _, of_job in assigned for tasks in of_job]
    free = max(0, worker.cores - len(slots))
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if worker.is_driver else worker.memory_bytes
    available = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES") if worker.is_driver else 0
    return {
        "id": worker.worker_id,
        "path": worker.path,
        "dataPort": worker.port,
        "jmxPort": -1,
        "timeSinceLastHeartbeat": now_ms(),
        "slotsNumber": worker.cores,
        "freeSlots": free,
        "assignedTasks": sum(slots),
        "totalResource": _resource(worker, 1.0),
        "freeResource": _resource(worker, free / worker.cores),
        "hardware": {
            "cpuCores": os.cpu_count() if worker.is_driver else worker.cores,
            "physicalMemory": physical,
            "freeMemory": available,
            "managedMemory": worker.managed_bytes,
        },
        "memoryConfiguration": {
            "frameworkHeap": 0,
            "taskHeap": worker.memory_bytes,
            "frameworkOffHeap": 0,
            "taskOffHeap": 0,
            "networkMemory": 0,
            "managedMemory": worker.managed_bytes,
            "jvmMetaspace": 0,
            "jvmOverhead": 0,
            "totalFlinkMemory": worker.memory_bytes,
            "totalProcessMemory": worker.memory_bytes,
        },
    }


def _resource(worker: Worker, share: float) -> Json:
    return {
        "cpuCores": round(worker.cores * share, 3),
        "taskHeapMemory": int(worker.memory_bytes * share) // _MB,
        "taskOffHeapMemory": 0,
        "managedMemory": int(worker.managed_bytes * share) // _MB,
        "networkMemory": 0,
        "extendedResources": {},
    }
