"""Write the state of a task into a savepoint, between two batches, and assemble the parts of all tasks.

Writing runs in the task: state goes directly from the pages into files. Only descriptions of files go to the driver.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from penstock.common.errors import SavepointError
from penstock.common.watermark_strategy import MIN_WATERMARK
from penstock.runtime.plan.job_vertex import ChainedOperator, JobVertex
from penstock.runtime.plan.offset import Offset
from penstock.runtime.records.key_groups import key_group_for
from penstock.runtime.savepoint.blocks import BlockWriter
from penstock.runtime.savepoint.codec import encode
from penstock.runtime.savepoint.manifest import Json, Manifest, OperatorManifest
from penstock.runtime.savepoint.storage import Directory, directory_at
from penstock.runtime.state.backend import DROPPED, KeyedStateBackend
from penstock.runtime.state.operator_state import RAW, OperatorStateBackend
from penstock.runtime.state.pages import PageDirectory, is_blank
from penstock.runtime.state.seen_types import SeenTypes, seen_types
from penstock.runtime.state.state_types import TypeDescription, merged, seen_in

BUFFERED_ENTRIES = 20_000
"""The entries that are buffered, over all key groups, so that blocks have a good size."""

EntryTuple = tuple[Any, ...]
"""(key, event timers, processing timers, slot 0, slot 1, ...)"""


@dataclass(slots=True)
class SavepointRequest:
    """Travels with a batch, and requests its final state."""

    request_id: str
    location: str
    compress: bool = False


@dataclass(slots=True)
class TaskPart:
    """The part of a savepoint that one task wrote."""

    request_id: str
    vertex: int
    subtask: int
    operators: list[Json] = field(default_factory=list)
    inputs: list[Json] = field(default_factory=list)
    event_time: int = MIN_WATERMARK
    error: str | None = None


class KeyedFileWriter:
    """Writes entries in any order into blocks by key group, with bounded memory."""

    def __init__(self, writer: BlockWriter, states: list[tuple[str, str]], max_parallelism: int, label: str) -> None:
        self._writer = writer
        self._names = [name for name, _ in states]
        self._max_parallelism = max_parallelism
        self._label = label
        self._groups: dict[int, list[EntryTuple]] = {}
        self._buffered = 0
        self.keys = 0
        self.bytes = 0
        self.key_types: set[str] = set()
        self.seen = SeenTypes(states)

    def add(self, entry: EntryTuple) -> None:
        """Add one key with all its state."""
        group = key_group_for(entry[0], self._max_parallelism)
        known = self._groups.get(group)
        if known is None:
            self._groups[group] = [entry]
        else:
            known.append(entry)
        self._buffered += 1
        if self._buffered >= BUFFERED_ENTRIES:
            self.flush()

    def flush(self) -> None:
        """Write the buffered entries."""
        for group in sorted(self._groups):
            entries = self._groups[group]
            keys, event, processing, *columns = (list(column) for column in zip(*entries, strict=True))
            states = {name: column for name, column in zip(self._names, columns, strict=False) if not is_blank(column)}
            self.key_types.update(seen_types(keys))
            for name, column in states.items():
                self.seen.note(name, column)
            data = encode((keys, _thin(event), _thin(processing), states), self._label)
            self._writer.add(group, data, len(keys))
            self.keys += len(keys)
            self.bytes += len(data)
        self._groups.clear()
        self._buffered = 0


def _thin(column: list[Any]) -> list[Any] | None:
    return None if is_blank(column) else column


def write_keyed_file(
    directory: Directory,
    name: str,
    entries: Iterator[EntryTuple] | Iterable[EntryTuple],
    layout: list[tuple[str, str]],
    max_parallelism: int,
    *,
    compress: bool,
    label: str,
) -> tuple[Json, SeenTypes]:
    """Write a keyed state file. Return its description, and the Python types found in each state."""
    with directory.create(name) as stream:
        blocks = BlockWriter(stream, compress=compress)
        writer = KeyedFileWriter(blocks, layout, max_parallelism, label)
        for entry in entries:
            writer.add(entry)
        writer.flush()
        description: Json = {
            "path": name,
            **blocks.finish(),
            "keys": writer.keys,
            "key_types": sorted(writer.key_types),
            "bytes": writer.bytes,
        }
    return description, writer.seen


def state_descriptions(directory: PageDirectory, seen: SeenTypes) -> list[Json]:
    """Describe the keyed states of an operator for the manifest."""
    return [
        {"name": name, "kind": kind, "type": seen.describe(name, directory.types.get(name))}
        for name, kind in directory.layout
        if kind != DROPPED
    ]


def write_operator(
    request: SavepointRequest,
    chained: ChainedOperator,
    subtask: int,
    backend: KeyedStateBackend | None,
    operator_state: OperatorStateBackend,
    watermark: int,
    now: int,
) -> Json:
    """Write the state of one operator in one subtask, and return its description."""
    directory = directory_at(request.location)
    unique = os.urandom(4).hex()  # a retry must not overwrite the files of the first attempt
    part: Json = {"operator": chained.operator_id, "subtask": subtask, "watermark": watermark}
    if backend is not None and (backend.directory.layout or backend.directory.total_bytes):  # it may have only timers
        description, seen = write_keyed_file(
            directory,
            f"{chained.operator_id}/keyed-{subtask}-{unique}.data",
            backend.scan(now),
            backend.directory.layout,
            chained.max_parallelism,
            compress=request.compress,
            label=f"state of operator '{chained.name}'",
        )
        part["keyed"] = {**description, "subtask": subtask}
        part["states"] = state_descriptions(backend.directory, seen)
    contents = operator_state.contents()
    if contents:
        name = f"{chained.operator_id}/operator-{subtask}-{unique}.data"
        part["operator_file"] = {
            **write_operator_file(
                directory, name, contents, operator_state.types, chained.name, compress=request.compress
            ),
            "subtask": subtask,
        }
    return part


def write_operator_file(
    directory: Directory,
    name: str,
    contents: dict[str, tuple[str, Any]],
    types: dict[str, TypeDescription],
    operator_name: str,
    *,
    compress: bool,
) -> Json:
    """Write an operator state file, with one block per state of the subtask."""
    states: list[Json] = []
    with directory.create(name) as stream:
        blocks = BlockWriter(stream, compress=compress)
        for tag, (state, (mode, content)) in enumerate(sorted(contents.items())):
            count = len(content) if isinstance(content, (list, dict)) else 1
            blocks.add(tag, encode(content, f"operator state '{state}' of operator '{operator_name}'"), count)
            described = seen_in(content, types.get(state)) if mode != RAW else None
            states.append({"name": state, "mode": mode, "count": count, "type": described})
        description: Json = {"path": name, **blocks.finish(), "states": states}
    return description


def assemble(
    request: SavepointRequest,
    vertices: list[JobVertex],
    parts: list[TaskPart],
    *,
    job_id: str,
    job_name: str,
    offset: Offset,
) -> Manifest:
    """Create the manifest from what all tasks wrote and from the source positions."""
    found = {(part.vertex, part.subtask): part for part in parts if part.request_id == request.request_id}
    manifest = Manifest(
        job_id=job_id,
        job_name=job_name,
        checkpoint_id=offset.checkpoint_id,
        processing_time=offset.processing_time,
        drained=offset.is_last,
        compression=request.compress,
    )
    for vertex in vertices:
        if vertex.is_source:
            head = vertex.operators[0]
            # A savepoint contains nothing about tasks, such as the subtask that reads a split (rule 3.10).
            manifest.sources[head.operator_id] = {
                "uid": head.uid,
                "name": head.name,
                "parallelism": vertex.source_parallelism,
                "splits": {
                    split: [at.offset, int(at.state)] for split, at in offset.of_source(head.operator_id).items()
                },
            }
        if vertex.level == 0:
            continue
        missing = [index for index in range(vertex.parallelism) if (vertex.id, index) not in found]
        if missing:
            raise SavepointError(f"subtask {missing[0]} of '{vertex.name}' wrote no state: take the savepoint again")
        for chained in vertex.operators:
            operator = manifest.operators[chained.operator_id] = OperatorManifest(
                chained.operator_id,
                chained.uid,
                chained.name,
                vertex.parallelism,
                chained.max_parallelism,
            )
            for subtask in range(vertex.parallelism):
                part = found[vertex.id, subtask]
                wrote = next(each for each in part.operators if each["operator"] == chained.operator_id)
                add_part(operator, wrote)
                if chained is vertex.operators[0]:
                    operator.event_times[str(subtask)] = part.event_time
                    _add_clocks(operator, part.inputs)
    return manifest


def add_part(operator: OperatorManifest, part: Json) -> None:
    """Add the part of one subtask to the manifest of an operator."""
    operator.watermarks[str(part["subtask"])] = part["watermark"]
    if "keyed" in part:
        operator.keyed_files.append(part["keyed"])
        known = {state["name"]: state for state in operator.keyed_states}
        for state in part["states"]:
            earlier = known.get(state["name"])
            if earlier is None:
                operator.keyed_states.append(state)
            elif state["type"] is not None:
                before = earlier["type"]
                earlier["type"] = state["type"] if before is None else merged(before, state["type"])
    if "operator_file" in part:
        operator.operator_files.append(part["operator_file"])
        for state in part["operator_file"]["states"]:
            operator.operator_states[state["name"]] = state["mode"]


def _add_clocks(operator: OperatorManifest, inputs: list[Json]) -> None:
    """Add clocks of input channels. The clock of a channel is the minimum over its receivers."""
    for seen in inputs:
        same = ("from", "tag", "index")
        known = next((i for i in operator.inputs if all(i[name] == seen[name] for name in same)), None)
        if known is None:
            operator.inputs.append({**seen, "clocks": dict(seen["clocks"])})
            continue
        for channel, (watermark, idle) in seen["clocks"].items():
            before, was_idle = known["clocks"].get(channel, (watermark, idle))
            known["clocks"][channel] = [min(before, watermark), was_idle and idle]


def remove_strays(directory: Directory, manifest: Manifest) -> None:
    """Remove files that failed attempts have left."""
    wanted = {file["path"] for file in manifest.files()}
    for name in directory.files():
        if name.endswith((".data", ".tmp")) and name not in wanted:
            directory.remove(name)
