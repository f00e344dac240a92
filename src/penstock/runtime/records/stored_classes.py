"""The names of Penstock's own classes in stored data, and where these classes are now.

State, commit logs and receive logs contain pickles, and a pickle names a class by its path. A class that moves must
still be found under the path it had when the data was written. Therefore everything that reads stored data uses
`load_stored`, and every path that may occur in stored data is registered here:

* A class that may be stored has an entry for its current path. Tests fail if stored data names an unregistered class.
* When you move or rename such a class, keep its entry, point it to the new place, and add an entry for the new path.
* Entries are never removed: checkpoints and savepoints are kept for years.

The structures around the values (snapshots, offsets, manifests) have their own encodings, with a version and without
classes: see `snapshots.py`, `offset.py` and `savepoint/manifest.py`.
"""

from __future__ import annotations

import io
import pickle
from functools import lru_cache
from importlib import import_module
from typing import Any

__all__ = ["STORED_CLASSES", "StoredUnpickler", "find_stored_class", "load_stored", "unregistered"]


def _entries(module: str, *names: str, now: str | None = None) -> dict[str, str]:
    return {f"{module}:{name}": f"{now or module}:{name}" for name in names}


_CONNECTORS = {
    "kinesis.source": ("_AssignersWatermarks",),
    "kafka.committer": ("KafkaCommittable",),
    "kafka.serialization": ("RecordChunk",),
    "file_system.part_files": ("InProgress", "Numbering", "PartFile", "Pending", "Superseded"),
}
_KEYS = ("ListKey", "DictKey", "SetKey", "BytearrayKey")
_STORED_VALUES = (
    *("count_window", "dataclass_value", "global_window", "key_slices", "named_tuple", "record_type", "row"),
    *("tagged", "time_window"),
)


def _moved(before: str, now: str, *names: str) -> dict[str, str]:
    return _entries(before, *names, now=now) | _entries(now, *names)


STORED_CLASSES: dict[str, str] = {
    # Values of user state and of windows.
    **_entries("penstock.common.types", "Row", "_unpickle_kind", "_unpickle_named"),
    **_entries("penstock.common.watermark", "WatermarkGenerator"),
    **_moved("penstock.runtime.unhashable_keys", "penstock.runtime.records.unhashable_keys", *_KEYS),
    **_entries("penstock.core.window.windows", "TimeWindow", "GlobalWindow.get", "CountWindow"),
    **_entries("penstock.core.window.tagged_union", "TaggedUnion"),
    **_moved("penstock.runtime.windows.slices", "penstock.runtime.state.key_slices", "KeySlices"),
    **_entries("penstock.runtime.table.batch", "_read_batch"),
    **_entries("penstock.core.table.data_view", "_list_view", "_map_view"),
    # The functions with which savepoints rebuild values.
    **_moved("penstock.runtime.savepoint.values", "penstock.runtime.state.stored_values", *_STORED_VALUES),
    # Snapshots and union list states of version 1, which were pickled directly.
    **_entries("penstock.runtime.chain", "OperatorSnapshot", now="penstock.runtime.state.snapshots"),
    **_moved("penstock.runtime.snapshots", "penstock.runtime.state.snapshots", "OperatorSnapshot"),
    **_entries("penstock.runtime.state.pages", "PageDirectory"),
    **_moved("penstock.runtime.frames", "penstock.runtime.exchange.frames", "SplitStatus"),
    **_entries("penstock.runtime.state.operator_state", "UnionPart"),
    # Connectors: committables and the state of writers.
    **{
        path: target
        for module, names in _CONNECTORS.items()
        for path, target in _moved(
            f"penstock.datastream.connectors.{module}", f"penstock.connectors.{module}", *names
        ).items()
    },
}
"""``module:name`` in stored data -> ``module:name`` in this version."""

unregistered: set[str] = set()
"""Paths of Penstock's own classes in stored data that are not registered. Tests check that it stays empty."""

# The modules from which programs import Penstock's classes. These names are the public API, so they stay.
_PUBLIC = (
    "penstock.common",
    "penstock.datastream",
    "penstock.datastream.functions",
    "penstock.datastream.state",
    "penstock.datastream.window",
    "penstock.util",
)


class StoredUnpickler(pickle.Unpickler):
    """Reads a pickle from stored data."""

    def find_class(self, module: str, name: str) -> Any:
        """Return the class or function for a path in stored data."""
        if module.startswith("penstock."):
            return find_stored_class(f"{module}:{name}")
        return super().find_class(module, name)


def load_stored(blob: bytes) -> Any:
    """Unpickle stored data.

    >>> load_stored(pickle.dumps({"key": [1, 2]}))
    {'key': [1, 2]}
    """
    return StoredUnpickler(io.BytesIO(blob)).load()


@lru_cache(maxsize=1024)
def find_stored_class(path: str) -> Any:
    """Return the Penstock class for ``module:name`` in stored data, or raise ImportError or AttributeError.

    A program may store values of any public class in its state. Moved classes are found by their public names.
    """
    target = STORED_CLASSES.get(path)
    if target is not None:
        return _attribute(target)
    unregistered.add(path)
    try:
        return _attribute(path)
    except (ImportError, AttributeError):
        name = path.partition(":")[2]
        for package in _PUBLIC:
            if hasattr(import_module(package), name):
                return getattr(import_module(package), name)
        raise


def _attribute(path: str) -> Any:
    module, _, name = path.partition(":")
    found: Any = import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found
