"""The committer of a file sink: renames complete files, and merges small files into large ones.

A compaction is recorded in a manifest before anything visible happens, and each manifest is always completed. A crash
can therefore neither lose a file nor show its records twice.

A driver that takes over first completes the manifests. It then removes files that belong to none, including drafts of
manifests. A compaction begins with such a draft and becomes valid when the draft is renamed, which fails in a replaced
driver.
"""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from penstock.connectors.file_system.part_files import (
    UNCOMPACTED,
    Pending,
    new_attempt,
    sink_tag,
    sink_writes,
    sync,
)
from penstock.connectors.file_system.sink_options import FileCompactor, FileCompactStrategy, Identical
from penstock.core.sink import Committer
from penstock.runtime.storage.checked_file import sync_directory

_MANIFEST = ".compaction-"


class FileSinkCommitter(Committer):
    """Renames files when the checkpoint completes."""

    after_checkpoint = True
    may_commit_early = True

    def __init__(
        self, base: str, prefix: str, strategy: FileCompactStrategy | None, compactor: FileCompactor | None
    ) -> None:
        self._base = Path(base)
        self._prefix = prefix
        self._strategy = strategy
        self._compactor = compactor
        self._tag = ""
        self._commits = 0
        self._changed: set[Path] = set()  # buckets with files to compact
        self._looked = False

    def open(self, job_id: str, sink_id: str) -> None:
        self._tag = sink_tag(job_id, sink_id)

    def commit(self, committables: list[Any], checkpoint_id: int) -> None:
        """Rename pending files. A file that is no longer pending is already renamed."""
        with sink_writes(self._base):
            self._commit(committables)

    def _commit(self, committables: list[Any]) -> None:
        directories: set[Path] = set()
        committed = False
        for pending in committables:
            assert isinstance(pending, Pending)
            source = Path(pending.source)
            if not pending.target:
                source.unlink(missing_ok=True)
                continue
            committed = True
            if source.exists():
                source.replace(pending.target)
                directories.add(source.parent)
        for directory in directories:
            sync_directory(directory)
        self._changed |= directories
        self._commits += committed

    # -- compaction ---------------------------------------------------------------------------------------------

    def checkpoint_complete(self, *, final: bool) -> None:
        if self._strategy is None or self._compactor is None:
            return
        if not self._looked:
            self._looked = True
            self._after_restart()
        every = self._strategy.checkpoints
        due = final or (every is not None and self._commits >= every)
        if not due and self._strategy.size_threshold is None:
            return
        if due:
            self._commits = 0
        chosen: list[tuple[Path, list[Path]]] = []
        for directory in sorted(self._changed):
            files = self._uncompacted(directory)
            size = sum(path.stat().st_size for path in files)
            if files and (due or size >= (self._strategy.size_threshold or size + 1)):
                chosen.append((directory, files))
        if chosen:
            with sink_writes(self._base), ThreadPoolExecutor(self._strategy.threads) as pool:
                list(pool.map(lambda one: self._compact(*one), chosen))
        if due:
            self._changed.clear()

    def _after_restart(self) -> None:
        """Complete unfinished compactions and find the buckets with files to compact."""
        if not self._base.exists():
            return
        self.fence.check()
        for manifest in sorted(self._base.rglob(f"{_MANIFEST}{self._prefix}-{self._tag}-*")):
            if manifest.suffix == ".json":
                self._carry_through(manifest)
            else:
                manifest.unlink(missing_ok=True)  # of a compaction without a manifest
        for path in self._base.rglob(f"{UNCOMPACTED}{self._prefix}-{self._tag}-*"):
            self._changed.add(path.parent)

    def _uncompacted(self, directory: Path) -> list[Path]:
        files = directory.glob(f"{UNCOMPACTED}{self._prefix}-{self._tag}-*")
        return sorted(files, key=_subtask_and_number)

    def _compact(self, directory: Path, files: list[Path]) -> None:
        assert self._compactor is not None
        groups = [[path] for path in files] if isinstance(self._compactor, Identical) else [files]
        for group in groups:
            name = group[0].name.removeprefix(UNCOMPACTED)
            hidden = f"{_MANIFEST}{name}.{new_attempt()}"
            output = directory / f"{hidden}.output"
            content = {"output": output.name, "target": f"compacted-{name}", "inputs": [path.name for path in group]}
            draft = directory / f"{hidden}.draft"
            with draft.open("wb") as out:
                out.write(json.dumps(content).encode())
                sync(out)
            self._compactor.compact(group, output)
            with output.open("r+b") as file:
                sync(file)
            self.fence.check()
            self._carry_through(draft.rename(directory / f"{hidden}.json"))

    def _carry_through(self, manifest: Path) -> None:
        """Complete a compaction. Harmless if another driver does it too."""
        content = json.loads(manifest.read_text(encoding="utf-8"))
        directory = manifest.parent
        with suppress(FileNotFoundError):
            (directory / content["output"]).replace(directory / content["target"])
        for name in content["inputs"]:
            (directory / name).unlink(missing_ok=True)
        sync_directory(directory)
        manifest.unlink(missing_ok=True)


def _subtask_and_number(path: Path) -> list[Any]:
    """Return a sort key for the order in which files were written."""
    return [int(part) if part.isdigit() else 0 for part in re.split("[-_]", path.name.split(".")[1])] + [path.name]
