"""Directories of a driver's own files in a checkpoint, fenced by their names.

The driver writes its logs (committables of sinks, received elements) to files by path. It may be paused between the
check of its lease and the write, and another driver may take over. The name of the directory therefore contains the
epoch: the next driver renames the directory atomically, and writes of the old driver fail.
"""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path

__all__ = ["adopt_directory"]


def adopt_directory(parent: Path, name: str, epoch: int) -> Path:
    """Return the directory of an epoch, with the files of the previous owner. It may not exist yet.

    >>> import tempfile
    >>> parent = Path(tempfile.mkdtemp())
    >>> (parent / "received-000003").mkdir()
    >>> adopt_directory(parent, "received", 5).name, [path.name for path in parent.iterdir()]
    ('received-000005', ['received-000005'])
    """
    if epoch == 0:  # no other driver can know about it
        return parent / name
    own = parent / f"{name}-{epoch:06d}"
    found = {_epoch_of(path, name): path for path in parent.glob(f"{name}*") if path.is_dir()}
    earlier = sorted(number for number in found if 0 <= number < epoch)
    if not own.exists() and earlier:
        found[earlier.pop()].rename(own)
    for number in earlier:  # of a fenced driver that did not know this yet
        with contextlib.suppress(OSError):
            shutil.rmtree(found[number])
    return own


def _epoch_of(path: Path, name: str) -> int:
    """Return 0 for a directory from before directories had epochs, and -1 for another name.

    >>> _epoch_of(Path("received-000003"), "received"), _epoch_of(Path("received"), "received")
    (3, 0)
    """
    if path.name == name:
        return 0
    number = path.name.removeprefix(f"{name}-")
    return int(number) if number.isdigit() else -1
