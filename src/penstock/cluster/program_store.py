"""Uploaded programs: files in one directory, named by the service."""

from __future__ import annotations

import ast
import re
import uuid
import zipfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from penstock.cluster.rest.responses import RestError

__all__ = ["ProgramStore", "StoredProgram", "entry_points"]

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")
_KINDS = {".py", ".zip", ".whl"}


@dataclass(frozen=True, slots=True)
class StoredProgram:
    """One program."""

    program_id: str
    path: Path
    uploaded: int

    @property
    def name(self) -> str:
        """The name of the upload."""
        return self.program_id.partition("_")[2]


class ProgramStore:
    """Programs by id. The name of an upload is only data: it never determines the path of a file."""

    def __init__(self, directory: Path, limit: int = 100 * 1024 * 1024) -> None:
        self.directory = directory
        self._limit = limit

    async def save(self, name: str, chunks: AsyncIterator[bytes]) -> StoredProgram:
        """Store an upload. Reject one that is too large while it arrives."""
        base = _UNSAFE.sub("_", Path(name.replace("\\", "/")).name).lstrip(".")
        if base.lower().endswith(".jar"):
            raise RestError(400, "Penstock runs Python programs: upload a .py, .zip or .whl file instead of a .jar.")
        if Path(base).suffix.lower() not in _KINDS:
            raise RestError(400, f"Only {', '.join(sorted(_KINDS))} files can be run, not {base!r}.")
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        program_id = f"{uuid.uuid4()}_{base}"
        hidden = self.directory / f".{program_id}.tmp"
        try:
            await self._write(hidden, chunks)
            hidden.replace(self.directory / program_id)
        finally:
            hidden.unlink(missing_ok=True)
        return self.find(program_id)

    async def _write(self, path: Path, chunks: AsyncIterator[bytes]) -> None:
        size = 0
        with path.open("wb") as file:
            async for chunk in chunks:
                size += len(chunk)
                if size > self._limit:
                    raise RestError(
                        413, f"The file is larger than {self._limit} bytes (rest.server.max-content-length)."
                    )
                file.write(chunk)

    def all(self) -> list[StoredProgram]:
        """Return all programs, the newest first."""
        if not self.directory.is_dir():
            return []
        paths = [path for path in self.directory.iterdir() if path.is_file() and not path.name.startswith(".")]
        found = [self._stored(path) for path in paths]
        return sorted(found, key=lambda program: program.uploaded, reverse=True)

    def find(self, program_id: str) -> StoredProgram:
        """Return the program with this id. Only ids from the list are opened."""
        for program in self.all():
            if program.program_id == program_id:
                return program
        raise RestError(404, f"There is no uploaded program {program_id}.")

    def remove(self, program_id: str) -> None:
        """Delete a program. This does not affect its running jobs."""
        self.find(program_id).path.unlink(missing_ok=True)

    @staticmethod
    def _stored(path: Path) -> StoredProgram:
        return StoredProgram(path.name, path, int(path.stat().st_mtime * 1000))


def entry_points(path: Path) -> list[str]:
    """Return the entry points of a program: the modules of an archive with a function `main`, or the file itself."""
    if path.suffix.lower() not in {".zip", ".whl"}:
        return [""]
    try:
        with zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if name.endswith(".py")]
            found = [name.removesuffix(".py").replace("/", ".") for name in names if _has_main(archive.read(name))]
    except (zipfile.BadZipFile, OSError):
        return []
    return [""] * ("__main__.py" in names) + [f"{module}:main" for module in found if module != "__main__"]


def _has_main(source: bytes) -> bool:
    try:
        return any(isinstance(node, ast.FunctionDef) and node.name == "main" for node in ast.parse(source).body)
    except (SyntaxError, ValueError):
        return False
