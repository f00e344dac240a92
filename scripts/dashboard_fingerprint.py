"""Ties the built dashboard to its sources: `--write` after a build, and a test compares."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ("index.html", "package.json", "package-lock.json", "tsconfig.json", "vite.config.ts", "src")
BUILT = ROOT / "src/penstock/cluster/static"
NOTE = ROOT / "dashboard/BUILT"


def fingerprint() -> str:
    """A digest of the sources, and one of the built files."""
    sources = [file for name in SOURCES for file in _files(ROOT / "dashboard" / name)]
    return f"sources {_digest(sources)}\nbuilt {_digest(_files(BUILT))}\n"


def _files(path: Path) -> list[Path]:
    return sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]


def _digest(files: list[Path]) -> str:
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{file.relative_to(ROOT)}\0".encode() + hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


if __name__ == "__main__":
    if "--write" in sys.argv:
        NOTE.write_text(fingerprint(), encoding="utf-8")
    elif NOTE.read_text(encoding="utf-8") != fingerprint():
        raise SystemExit("The built dashboard does not belong to its sources: run make dashboard.")
