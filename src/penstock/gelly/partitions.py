"""Partitioned collections of Arrow tables, and the engines that compute them.

A partition is a *bundle* of named tables. An engine has two kinds of steps. A ``narrow`` step computes partition *i* of
the result from partition *i* of its inputs. An ``exchange`` also sends each table to a partition or to the driver. All
operations of graphs are composed of these two, so they run in the same way in this process and on Spark.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from penstock.gelly.columns import concat

__all__ = ["DRIVER", "Bundle", "CollectionsEngine", "Engine", "Frame", "Partitions"]

DRIVER = -1
"""The channel of reports that an exchange sends to the driver."""

Bundle = Mapping[str, Any]
"""The tables of one partition, by name. A table without rows may be missing."""

Frame = tuple[int, str, Any]
"""The destination, the name of the table, and the table."""


class Partitions(Protocol):
    """A collection with one bundle in each partition."""

    def collect(self, name: str) -> list[Any]:
        """Return the tables with this name, one for each partition that has one."""

    def report(self) -> list[Any]:
        """Return what the exchange has sent to the driver. Computes the collection."""

    def persist(self) -> Partitions:
        """Keep the collection once it is computed."""

    def release(self) -> None:
        """Release what `persist` keeps."""

    def cut_lineage(self) -> None:
        """Keep the computed collection, and drop the lineage to compute it again."""


class Engine(Protocol):
    """Computes partitions."""

    @property
    def parallelism(self) -> int:
        """The number of partitions."""

    def source(self, data: Any) -> Partitions | None:
        """Return a collection of this engine (a DataFrame) as tables named ``rows``, or None for other data."""

    def scatter(self, frames: Iterable[Frame]) -> Partitions:
        """Distribute tables of the driver as a collection."""

    def narrow(self, kernel: Callable[..., Iterable[tuple[str, Any]]], inputs: Sequence[Partitions]) -> Partitions:
        """``kernel(channel, *bundles)`` returns the tables of a partition. Inputs have the same partitioning."""

    def exchange(self, kernel: Callable[..., Iterable[Frame]], inputs: Sequence[Partitions]) -> Partitions:
        """``kernel(channel, *bundles)`` returns tables, each with its destination channel."""

    def to_dataframe(self, partitions: Partitions, name: str) -> Any:
        """Return the tables with this name as a DataFrame."""

    def save(self, partitions: Partitions, path: str) -> None:
        """Write a collection to a directory."""

    def load(self, path: str) -> Partitions:
        """Read what `save` has written."""

    def write_note(self, path: str, note: dict[str, Any]) -> None:
        """Write a small file atomically."""

    def read_note(self, path: str) -> dict[str, Any] | None:
        """Read a small file, or return None if it does not exist."""

    def delete(self, path: str) -> None:
        """Delete a file or directory, if it exists."""


class _Local:
    """A collection in this process."""

    def __init__(self, bundles: list[dict[str, list[Any]]], reports: list[Any]) -> None:
        self.parts = bundles
        self.reports = reports

    def bundle(self, channel: int) -> dict[str, Any]:
        return {name: concat(tables) for name, tables in self.parts[channel].items()}

    def collect(self, name: str) -> list[Any]:
        return [concat(bundle[name]) for bundle in self.parts if name in bundle]

    def report(self) -> list[Any]:
        return self.reports

    def persist(self) -> _Local:
        return self

    def release(self) -> None:
        pass

    def cut_lineage(self) -> None:
        pass


class CollectionsEngine:
    """Computes in this process, one partition after the other, and immediately."""

    def __init__(self, parallelism: int = 2) -> None:
        self._parallelism = parallelism

    @property
    def parallelism(self) -> int:
        """The number of partitions."""
        return self._parallelism

    def source(self, data: Any) -> Partitions | None:
        """Return None: this engine has no collections of its own."""
        return None

    def scatter(self, frames: Iterable[Frame]) -> _Local:
        """Distribute tables as a collection."""
        bundles: list[dict[str, list[Any]]] = [{} for _ in range(self._parallelism)]
        reports = []
        for channel, name, table in frames:
            if channel == DRIVER:
                reports.append(table)
            else:
                bundles[channel].setdefault(name, []).append(table)
        return _Local(bundles, reports)

    def narrow(self, kernel: Callable[..., Iterable[tuple[str, Any]]], inputs: Sequence[Any]) -> _Local:
        """Run a step without an exchange."""
        return self.scatter(
            (channel, name, table)
            for channel in range(self._parallelism)
            for name, table in kernel(channel, *[each.bundle(channel) for each in inputs])
        )

    def exchange(self, kernel: Callable[..., Iterable[Frame]], inputs: Sequence[Any]) -> _Local:
        """Run a step with an exchange."""
        return self.scatter(self._frames(kernel, inputs))

    def _frames(self, kernel: Callable[..., Iterable[Frame]], inputs: Sequence[Any]) -> Iterator[Frame]:
        for channel in range(self._parallelism):
            yield from kernel(channel, *[each.bundle(channel) for each in inputs])

    def to_dataframe(self, partitions: Partitions, name: str) -> Any:
        """Reject the conversion: DataFrames need Spark."""
        from penstock.gelly.environment import no_spark

        raise no_spark()

    def save(self, partitions: Any, path: str) -> None:
        """Write a collection to a directory."""
        Path(path).mkdir(parents=True, exist_ok=True)
        data = [
            (channel, name, _to_bytes(table))
            for channel, bundle in enumerate(partitions.parts)
            for name, tables in bundle.items()
            for table in tables
        ]
        Path(path, "frames").write_bytes(pickle.dumps(data))

    def load(self, path: str) -> _Local:
        """Read what `save` has written."""
        data = pickle.loads(Path(path, "frames").read_bytes())
        return self.scatter((channel, name, _from_bytes(table)) for channel, name, table in data)

    def write_note(self, path: str, note: dict[str, Any]) -> None:
        """Write a small file atomically."""
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        unfinished = Path(path + ".tmp")
        unfinished.write_bytes(pickle.dumps(note))
        unfinished.replace(path)

    def read_note(self, path: str) -> dict[str, Any] | None:
        """Read a small file, or return None if it does not exist."""
        try:
            found: dict[str, Any] = pickle.loads(Path(path).read_bytes())
        except FileNotFoundError:
            return None
        return found

    def delete(self, path: str) -> None:
        """Delete a note or what `save` has written, if it exists."""
        if Path(path).is_dir():
            Path(path, "frames").unlink(missing_ok=True)
            Path(path).rmdir()
        else:
            Path(path).unlink(missing_ok=True)


def _to_bytes(table: Any) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _from_bytes(data: bytes) -> Any:
    return pa.ipc.open_stream(data).read_all()
