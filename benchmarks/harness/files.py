"""The files of jobs (n) and (r): what is read, and the fingerprint of what was written."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.harness.options import Options
from benchmarks.harness.report import digest
from benchmarks.harness.slope import measure_slope
from benchmarks.jobs.catalogue import JOBS

_SCATTER = 2_654_435_761
_EVENTS_PER_MS = 10
_LINES_AT_ONCE = 50_000


@dataclass(slots=True, frozen=True)
class FilesLoad:
    """What a job reads and where it writes. (r) makes its records itself and reads no files."""

    inputs: tuple[str, ...]
    target: str
    parallelism: int
    records: int


class Scratch:
    """A directory for the files of one measured process."""

    def __init__(self, directory: Path, options: Options, header: str) -> None:
        self._directory = directory
        self._options = options
        self._header = header
        self._targets = 0

    def load(self, records: int) -> FilesLoad:
        """The input of so many records, written before the clock starts, and a new place for the result.

        There is a file for every subtask, each in order of event time from 0 on: they advance side by side, as the
        partitions of a log do.
        """
        files = self._options.parallelism
        inputs = tuple(self._directory / f"input-{records}" / f"part-{number}.csv" for number in range(files))
        if JOBS[self._options.job].reads_files and not inputs[0].parent.exists():
            inputs[0].parent.mkdir()
            for number, path in enumerate(inputs):
                self._write(path, number, -(-records // files))
        self._targets += 1
        target = self._directory / f"output-{self._targets}"
        return FilesLoad(tuple(map(str, inputs)), str(target), files, records)

    def _write(self, path: Path, number: int, lines: int) -> None:
        keys, files = self._options.keys, self._options.parallelism
        per_ms = max(1, _EVENTS_PER_MS // files)
        with path.open("w") as file:
            file.write(self._header)
            for start in range(0, lines, _LINES_AT_ONCE):
                part = range(start, min(lines, start + _LINES_AT_ONCE))
                file.writelines(f"{(n * files + number) * _SCATTER % keys},{n // per_ms}\n" for n in part)


@contextmanager
def scratch(options: Options, header: str = "") -> Iterator[Scratch]:
    """A directory that is gone at the end."""
    with tempfile.TemporaryDirectory(prefix="bench-files-") as directory:
        yield Scratch(Path(directory), options, header)


def digest_of(load: FilesLoad, columns: list[str] | None = None) -> dict[str, object]:
    """Count and fingerprint of the rows in the Parquet files that are complete; of some columns, if so wanted."""
    import pyarrow.parquet as pq

    paths = [
        path
        for path in Path(load.target).rglob("*")
        if path.is_file() and not path.name.startswith((".", "_")) and "_delta_log" not in path.parts
    ]
    rows: list[object] = []
    for path in paths:
        with pq.ParquetFile(path) as file:
            rows += map(tuple, (row.values() for row in file.read(columns).to_pylist()))
    return digest(rows)


def run_files_job(options: Options, execute: Callable[[FilesLoad], object], header: str = "") -> dict[str, object]:
    """Measure, or compare, what `execute` does with the files."""
    with scratch(options, header) as files:
        if options.mode == "collect":
            load = files.load(options.records)
            execute(load)
            return digest_of(load, JOBS[options.job].columns)

        def prepare(records: int) -> Callable[[], object]:
            load = files.load(records)
            return lambda: execute(load)

        return measure_slope(prepare, expected=options.expected, seconds=options.seconds).as_json()
