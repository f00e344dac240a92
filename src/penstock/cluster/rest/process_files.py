"""Logs, standard output and metrics of a process: the driver's, or the service's."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from starlette.responses import Response

from penstock.cluster.redaction import redact_text
from penstock.cluster.rest.jobs import Json
from penstock.cluster.rest.responses import RestError

__all__ = ["LogFiles", "process_metrics"]

_SHOWN_BYTES = 8 << 20
"""The part at the end of a log to show, because logs may be too large for a browser."""


class LogFiles:
    """The log files of a process. Only names from the list are opened, so that paths cannot escape."""

    def __init__(self, find: Callable[[], list[Path]] = list) -> None:
        self._find = find

    def _files(self) -> dict[str, Path]:
        return {path.name: path for path in self._find() if path.is_file()}

    def listing(self) -> Json:
        """`GET .../logs`."""
        found = []
        for name, path in self._files().items():
            status = path.stat()
            found.append({"name": name, "size": status.st_size, "mtime": int(status.st_mtime * 1000)})
        return {"logs": found}

    def read(self, name: str) -> Response:
        """`GET .../logs/:name`, without secrets in URLs."""
        path = self._files().get(name)
        if path is None:
            raise RestError(404, "File not found.")
        return _text(path)

    def newest(self) -> Response:
        """`GET .../log` and `.../stdout`: the most recent file, or empty without one."""
        files = sorted(self._files().values(), key=lambda path: path.stat().st_mtime)
        return _text(files[-1]) if files else Response("", media_type="text/plain")


def _text(path: Path) -> Response:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - _SHOWN_BYTES))
        content = file.read()
    return Response(redact_text(content.decode("utf-8", "replace")), media_type="text/plain")


def process_metrics() -> dict[str, Any]:
    """Return the resources that this Python process uses."""
    found: dict[str, Any] = {
        "Status.Python.Threads.Count": threading.active_count(),
        "Status.Python.GC.Collections": sum(generation["collections"] for generation in gc.get_stats()),
        "Status.CPU.Time": int(sum(os.times()[:2]) * 1000),
    }
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except (OSError, IndexError, ValueError):
        return found
    used = pages * os.sysconf("SC_PAGE_SIZE")
    return {**found, "Status.Python.Memory.Rss": used, **_as_jvm_memory(used)}


def _as_jvm_memory(used: int) -> dict[str, int]:
    """Return the memory of a Python process under the names of dashboards for Flink, all as heap."""
    most = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    sizes = {"Heap.Used": used, "Heap.Committed": used, "Heap.Max": most}
    unknown = ("NonHeap.Used", "NonHeap.Committed", "NonHeap.Max", "Metaspace.Used", "Metaspace.Max")
    return {f"Status.JVM.Memory.{name}": size for name, size in (*sizes.items(), *((name, 0) for name in unknown))}
