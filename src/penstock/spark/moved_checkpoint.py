"""Handle a checkpoint directory that was moved or copied since it was written.

Spark writes absolute paths into a checkpoint: those of the files that describe the layout of the state. In another
place, it would read the files of the old one if they still exist. Therefore the paths are corrected before Spark reads
them. Spark identifies a DataFrame that is stored in the checkpoint by the paths of its files, in a long log, and would
read it again. Such a checkpoint is rejected.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from penstock.common.errors import CheckpointError

if TYPE_CHECKING:
    from penstock.spark.checkpoint_metadata import CheckpointDirectory

__all__ = ["correct_paths"]

_FRAMES = "frames"


def correct_paths(directory: CheckpointDirectory, written_at: str | None) -> bool:
    """Correct the paths in a checkpoint, and return whether there were any to correct.

    ``written_at`` is the location that the job has recorded, if any.
    """
    here = directory.qualified()
    if written_at == here:
        return False
    changed = [file for operator in directory.names("state") for file in _moved_metadata(directory, here, operator)]
    moved = bool(changed) or written_at is not None
    if moved and directory.names(_FRAMES):
        raise CheckpointError(
            f"the checkpoint in {directory.location} was moved or copied, and contains a DataFrame that Spark would "
            f"read again here. Move it back{f' to {written_at}' if written_at else ''}, or start the job in an empty "
            "checkpoint directory"
        )
    for name, content in changed:
        directory.write(name, content)
    return moved


def _moved_metadata(directory: CheckpointDirectory, here: str, operator: str) -> list[tuple[str, bytes]]:
    """Return files of an operator's state that contain an old path, with their corrected content."""
    folder = f"state/{operator}/_metadata/v2"
    found = []
    for batch in directory.names(folder):
        if not batch.isdigit():
            continue
        name = f"{folder}/{batch}"
        version, _, text = directory.read(name).decode(errors="replace").partition("\n")
        try:
            content = json.loads(text)
            stores = content["stateStoreInfo"]
            changed = [_correct_store(directory, here, operator, store) for store in stores]
        except (ValueError, KeyError, TypeError, AttributeError):
            continue  # Spark reports what is wrong with it
        if any(changed):
            line = json.dumps(content, separators=(",", ":"), ensure_ascii=False)
            found.append((name, f"{version}\n{line}".encode()))
    return found


def _correct_store(directory: CheckpointDirectory, here: str, operator: str, store: dict[str, Any]) -> bool:
    paths: list[str] = store["stateSchemaFilePaths"]
    below = f"state/{operator}/_stateSchema/{store['storeName']}"
    right = [f"{here}/{below}/{path.rpartition('/')[2]}" for path in paths]
    if right == paths:
        return False
    present = set(directory.names(below))
    for path in right:
        file = path.rpartition("/")[2]
        if file not in present:
            raise CheckpointError(
                f"the checkpoint in {directory.location} was moved or copied, but its file {below}/{file} cannot be "
                "read: it was not copied. Copy the whole directory, or start from a savepoint with an empty "
                "checkpoint directory"
            )
    store["stateSchemaFilePaths"] = right
    return True
