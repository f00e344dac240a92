"""Read savepoints as Python iterators, with one block in memory at a time, or as Spark DataFrames.

It imports the parts of a savepoint, one module per kind of state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from penstock.common.errors import SavepointError
from penstock.common.typeinfo import TypeInformation
from penstock.metrics import MetricGroup
from penstock.runtime.operators.operator import JobInfo
from penstock.runtime.operators.runtime_context import StreamingRuntimeContext
from penstock.runtime.savepoint.blocks import BlockFile
from penstock.runtime.savepoint.manifest import Json, Manifest, OperatorManifest, read_manifest, verify
from penstock.runtime.savepoint.restore import keyed_entries, read_operator_state
from penstock.runtime.savepoint.storage import absolute, directory_at
from penstock.runtime.state.backend import KeyedStateBackend
from penstock.runtime.state.keyed_store import KeyedStateFactory
from penstock.runtime.state.operator_state import BROADCAST, MODES, SPLIT, UNION
from penstock.runtime.state.pages import MemoryPageStore, Page, PageDirectory
from penstock.runtime.state.ttl import without_stamps
from penstock.runtime.windows.base import CONTENTS_STATE
from penstock.state_processor.functions import KeyedStateReaderFunction
from penstock.state_processor.views import windows_in

EVENT_TIME, PROCESSING_TIME = "EVENT_TIME", "PROCESSING_TIME"


class SavepointReader:
    """Reads a savepoint."""

    def __init__(self, location: str, manifest: Manifest) -> None:
        self.location = location
        self.manifest = manifest

    @staticmethod
    def read(path: str) -> SavepointReader:
        """Open a savepoint. Only its manifest is read."""
        return SavepointReader(absolute(path), read_manifest(path))

    def verify(self) -> SavepointReader:
        """Read the whole savepoint and compare checksums. Raise an error if a file is damaged."""
        verify(self.location)
        return self

    def operators(self) -> list[str]:
        """Return the uids (or generated ids) of all operators with state."""
        found = [operator for operator in self.manifest.operators.values() if operator.has_state]
        return [operator.uid or operator.operator_id for operator in found]

    def states(self, uid: str) -> dict[str, str]:
        """Return the states of an operator: name and kind."""
        operator = self.manifest.find(uid)
        keyed = {state["name"]: state["kind"] for state in operator.keyed_states}
        return {**keyed, **{name: f"{mode} operator state" for name, mode in operator.operator_states.items()}}

    def source_positions(self, uid: str) -> dict[str, Any]:
        """Return the position of a source: the offset of each split."""
        source = self.manifest.sources[self.manifest.find_source(uid)]
        return {split: position[0] for split, position in source["splits"].items()}

    # -- keyed state --------------------------------------------------------------------------------------------

    def read_keyed_state(self, uid: str, what: str | KeyedStateReaderFunction) -> Iterator[Any]:
        """Yield ``(key, value)`` for every key with the named state, or the results of a reader function.

        The value of a list state is a list, of a map state a dict, and of an aggregating state the accumulator.
        """
        operator = self.manifest.find(uid)
        if isinstance(what, KeyedStateReaderFunction):
            return read_with(self.location, operator, what)
        self._check_kind(operator, what, of_windows=False)
        return _portion(self.location, operator, None, "keyed", what)

    def read_window_state(self, uid: str, name: str | None = None) -> Iterator[tuple[Any, Any, Any]]:
        """Yield ``(key, window, contents)`` of all open windows. With a name, yield the window state with this name."""
        operator = self.manifest.find(uid)
        self._check_kind(operator, name or CONTENTS_STATE, of_windows=True)
        return _portion(self.location, operator, None, "windows", name or CONTENTS_STATE)

    def read_timers(self, uid: str) -> Iterator[tuple[Any, str, int, Any]]:
        """Yield Read ``(key, EVENT_TIME or PROCESSING_TIME, timestamp, namespace)`` of all timers."""
        return _portion(self.location, self.manifest.find(uid), None, "timers", None)

    def _check_kind(self, operator: OperatorManifest, name: str, *, of_windows: bool) -> None:
        kind = next((state["kind"] for state in operator.keyed_states if state["name"] == name), None)
        if kind is None:
            known = ", ".join(f"'{state['name']}'" for state in operator.keyed_states) or "none"
            raise SavepointError(f"operator {operator.title} has no keyed state '{name}'; it has: {known}")
        if of_windows != (kind.startswith("windowed ") or (name == CONTENTS_STATE and " state" not in kind)):
            whose, call = ("keys", "read_keyed_state") if of_windows else ("keys and windows", "read_window_state")
            raise SavepointError(f"state '{name}' of operator {operator.title} is state of {whose}: use {call}()")

    # -- operator state -----------------------------------------------------------------------------------------

    def read_list_state(self, uid: str, name: str) -> Iterator[Any]:
        """Yield the elements of an operator list state, of all subtasks."""
        return self._elements(uid, name, SPLIT)

    def read_union_state(self, uid: str, name: str) -> Iterator[Any]:
        """Yield the elements of an operator union list state."""
        return self._elements(uid, name, UNION)

    def read_broadcast_state(self, uid: str, name: str) -> Iterator[tuple[Any, Any]]:
        """Yield the entries of a broadcast state, which is the same in all subtasks."""
        operator = self._operator_state(uid, name, BROADCAST)
        return iter((read_operator_state(directory_at(self.location), operator, name, 0) or {}).items())

    def _elements(self, uid: str, name: str, mode: str) -> Iterator[Any]:
        operator, directory = self._operator_state(uid, name, mode), directory_at(self.location)
        parts = (read_operator_state(directory, operator, name, subtask) for subtask in range(operator.parallelism))
        return (element for part in parts for element in part or ())

    def _operator_state(self, uid: str, name: str, mode: str) -> OperatorManifest:
        operator = self.manifest.find(uid)
        found = operator.operator_states.get(name)
        if found != mode:
            known = ", ".join(f"'{n}' ({MODES[m]})" for n, m in operator.operator_states.items()) or "none"
            raise SavepointError(f"operator {operator.title} has no {MODES[mode]} '{name}'; it has: {known}")
        return operator

    # -- as DataFrames ------------------------------------------------------------------------------------------

    def keyed_state_frame(
        self,
        spark: Any,
        uid: str,
        name: str,
        key_type: TypeInformation | None = None,
        value_type: TypeInformation | None = None,
    ) -> Any:
        """Return a Spark DataFrame (key, value), which the executors read. Missing types are inferred from a value."""
        operator = self.manifest.find(uid)
        self._check_kind(operator, name, of_windows=False)
        return self._frame(spark, operator, "keyed", name, {"key": key_type, "value": value_type})

    def window_state_frame(
        self,
        spark: Any,
        uid: str,
        name: str | None = None,
        key_type: TypeInformation | None = None,
        value_type: TypeInformation | None = None,
    ) -> Any:
        """Return a Spark DataFrame (key, window, value). A time window is a struct of start and end."""
        operator = self.manifest.find(uid)
        self._check_kind(operator, name or CONTENTS_STATE, of_windows=True)
        types = {"key": key_type, "window": None, "value": value_type}
        return self._frame(spark, operator, "windows", name or CONTENTS_STATE, types)

    def timers_frame(self, spark: Any, uid: str, key_type: TypeInformation | None = None) -> Any:
        """Return a Spark DataFrame (key, time_domain, timestamp)."""
        types = {"key": key_type, "time_domain": None, "timestamp": None}
        return self._frame(spark, self.manifest.find(uid), "timers", None, types)

    def _frame(self, spark: Any, operator: OperatorManifest, view: str, name: str | None, types: dict[str, Any]) -> Any:
        from penstock.spark.savepoint_frames import read_frame

        portions = [(self.location, operator, file, view, name) for file in operator.keyed_files]
        return read_frame(spark, portions, read_portion, types)


def read_portion(portion: tuple[str, OperatorManifest, Json, str, str | None]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of one file. Runs in an executor."""
    location, operator, file, view, name = portion
    for row in _portion(location, operator, file, view, name):
        yield row[:3]  # DataFrames do not contain a timer's namespace


def _entries(location: str, operator: OperatorManifest, file: Json | None, names: list[str]) -> Iterator[Any]:
    files = [BlockFile(directory_at(location), one) for one in (operator.keyed_files if file is None else [file])]
    return keyed_entries(files, None, names, operator.title)


def _portion(
    location: str, operator: OperatorManifest, file: Json | None, view: str, name: str | None
) -> Iterator[tuple[Any, ...]]:
    kinds = {state["name"]: state["kind"] for state in operator.keyed_states}
    if view == "timers" or name is None:
        for key, event, processing in _entries(location, operator, file, []):
            for domain, timers in ((EVENT_TIME, event), (PROCESSING_TIME, processing)):
                pairs = [(timer, None) if type(timer) is int else timer for timer in timers or ()]
                for timestamp, namespace in sorted(pairs, key=lambda pair: pair[0]):
                    yield key, domain, timestamp, namespace
        return
    kind = kinds[name]
    see: Callable[[Any, Any], Iterator[tuple[Any, ...]]] = _windowed(kind) if view == "windows" else _single(kind)
    for key, _, _, stored in _entries(location, operator, file, [name]):
        if stored is not None:
            yield from see(key, stored)


def _single(kind: str) -> Callable[[Any, Any], Iterator[tuple[Any, ...]]]:
    def see(key: Any, stored: Any) -> Iterator[tuple[Any, ...]]:
        yield key, without_stamps(kind, stored)

    return see


def _windowed(kind: str) -> Callable[[Any, Any], Iterator[tuple[Any, ...]]]:
    plain = kind.removeprefix("windowed ")

    def see(key: Any, stored: Any) -> Iterator[tuple[Any, ...]]:
        if kind.startswith("windowed "):
            for window, value in stored.items():
                yield key, window, without_stamps(plain, value)
        else:
            for window, contents in windows_in(kind, stored):
                yield key, window, contents

    return see


class _KeyContext(KeyedStateReaderFunction.Context):
    def __init__(self) -> None:
        self.event: Any = None
        self.processing: Any = None

    def registered_event_time_timers(self) -> list[int]:
        return sorted(timer if type(timer) is int else timer[0] for timer in self.event or ())

    def registered_processing_time_timers(self) -> list[int]:
        return sorted(timer if type(timer) is int else timer[0] for timer in self.processing or ())


def read_with(location: str, operator: OperatorManifest, function: KeyedStateReaderFunction) -> Iterator[Any]:
    """Call a reader function for each key."""
    layout = [(state["name"], state["kind"]) for state in operator.keyed_states]
    types = {state["name"]: state["type"] for state in operator.keyed_states if state["type"] is not None}
    backend = KeyedStateBackend(
        operator.operator_id,
        operator.name,
        MemoryPageStore(),
        operator.max_parallelism,
        PageDirectory(layout=list(layout), types=types),
    )
    context = StreamingRuntimeContext(
        operator_name=operator.name,
        subtask=0,
        parallelism=1,
        max_parallelism=operator.max_parallelism,
        job=JobInfo(),
        metrics=MetricGroup(),
        states=KeyedStateFactory(backend, lambda: 0),  # at time 0, nothing has expired
    )
    function.set_runtime_context(context)
    function.open(context)
    key_context, page = _KeyContext(), Page(0)
    try:
        for key, event, processing, *values in _entries(location, operator, None, [name for name, _ in layout]):
            added = len(backend.directory.layout) - len(layout)
            backend.key, backend.entry = key, [page, event, processing, *values, *[None] * added]
            key_context.event, key_context.processing = event, processing
            yield from function.read_key(key, key_context) or ()
    finally:
        function.close()
