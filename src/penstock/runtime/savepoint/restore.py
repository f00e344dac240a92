"""Continue from a savepoint: the driver checks compatibility once, then each task loads its own state.

A task loads its state in the first batch, into the store that keeps it afterwards. A crash in this batch discards the
store's uncommitted changes, so the next attempt loads the state again.

It imports the plan, the parts of a savepoint and the state built from them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.common.errors import SavepointError, shorten
from penstock.common.watermark_strategy import MIN_WATERMARK
from penstock.runtime.plan.job_vertex import ChainedOperator, JobEdge, JobVertex, key_types_of
from penstock.runtime.plan.offset import Offset, SplitPosition, SplitState
from penstock.runtime.records.key_groups import key_group_for, key_group_range, never_changes
from penstock.runtime.records.serialization import dumps
from penstock.runtime.savepoint.blocks import BlockFile
from penstock.runtime.savepoint.codec import decode
from penstock.runtime.savepoint.manifest import Manifest, OperatorManifest, read_manifest
from penstock.runtime.savepoint.page_builder import PageBuilder
from penstock.runtime.savepoint.storage import Directory, absolute, directory_at
from penstock.runtime.state.operator_state import BROADCAST, RAW, SPLIT, operator_state_page
from penstock.runtime.state.pages import PageDirectory, PageStore
from penstock.runtime.state.record_types import RecordNotes
from penstock.runtime.state.snapshots import OperatorSnapshot, TaskSnapshot
from penstock.runtime.state.state_types import key_types_mismatch


@dataclass(slots=True)
class RestorePlan:
    """The savepoint from which a job continues."""

    location: str
    manifest: Manifest
    ignore_unclaimed: bool = False

    def initial_offset(self) -> Offset:
        """The offset at which the coordinator begins."""
        splits = {
            source_id: {
                split: SplitPosition(offset, SplitState(state), *subtask)
                for split, (offset, state, *subtask) in source["splits"].items()
            }
            for source_id, source in self.manifest.sources.items()
            if source["splits"]
        }
        return Offset(self.manifest.checkpoint_id, self.manifest.processing_time, splits=splits)


def plan_restore(
    location: str, vertices: list[JobVertex], edges: list[JobEdge], *, ignore_unclaimed: bool = False
) -> RestorePlan:
    """Check that a job can continue from a savepoint. Otherwise raise a SavepointError with the reason."""
    location = absolute(location)
    manifest = read_manifest(location)
    operators = {chained.operator_id: (vertex, chained) for vertex in vertices for chained in vertex.operators}
    for known in manifest.operators.values():
        if known.operator_id not in operators:
            if known.has_state and not ignore_unclaimed:
                raise _unclaimed(location, f"operator {known.title}")
            continue
        vertex, chained = operators[known.operator_id]
        # Operators directly after a source keep no state.
        if vertex.level == 0 and known.has_state and not ignore_unclaimed:
            raise SavepointError(
                f"the savepoint in {location} has state of operator {known.title}, which keeps no state in this job: "
                "request the state in the operator, or allow state that is not restored "
                "(execution.savepoint.ignore-unclaimed-state)"
            )
        _check_operator(known, vertex, chained, edges)
    for source_id, source in list(manifest.sources.items()):
        if source_id in operators:
            vertex, _ = operators[source_id]
            vertex.split_parallelism = source["parallelism"]
            source["splits"] = {
                split: [*position[:2], index % vertex.parallelism]
                for index, (split, position) in enumerate(source["splits"].items())
            }
            continue
        if (source["splits"] or source.get("spark")) and not ignore_unclaimed:
            title = f"source '{source['name']}'" + (f" (uid {source['uid']!r})" if source["uid"] else "")
            raise _unclaimed(location, title)
        del manifest.sources[source_id]
    return RestorePlan(location, manifest, ignore_unclaimed)


def _unclaimed(location: str, whose: str) -> SavepointError:
    return SavepointError(
        f"the savepoint in {location} has state of {whose}, which this job does not have: give the operator its "
        "previous uid(), or allow state that is not restored (execution.savepoint.ignore-unclaimed-state)"
    )


def _check_operator(known: OperatorManifest, vertex: JobVertex, chained: ChainedOperator, edges: list[JobEdge]) -> None:
    keyed = chained.operator is not None and chained.operator.keyed
    if known.is_keyed and not keyed and known.has_state:
        raise SavepointError(
            f"operator {known.title} has keyed state in the savepoint, but is not on a keyed stream in this job"
        )
    if known.is_keyed:
        adopt_max_parallelism(known.max_parallelism, vertex, chained, edges)
    if known.has_state and chained is vertex.operators[0]:
        _check_key_type(known, [edge for edge in edges if edge.target == vertex.id])


def _check_key_type(known: OperatorManifest, inputs: list[JobEdge]) -> None:
    declared = [each["key"] for each in known.inputs if "key" in each]
    reason = key_types_mismatch(declared or [known.key_type], key_types_of(inputs))
    if reason is not None:
        raise SavepointError(
            f"operator {known.title} had another key type when its state was written: {reason}. Key types cannot "
            "change: no record would find the existing state"
        )


def adopt_max_parallelism(known: int, vertex: JobVertex, chained: ChainedOperator, edges: list[JobEdge]) -> None:
    """Adopt the number of key groups of existing state. Reject a program that sets another one (rules F03, F08)."""
    if chained.max_parallelism == known:
        return
    title = f"'{chained.name}' (uid {chained.uid!r})" if chained.uid else f"'{chained.name}'"
    if chained.explicit_max_parallelism:
        raise SavepointError(
            f"operator {title} had max parallelism {known} when its state was written, this job sets "
            f"{chained.max_parallelism}: the number of key groups cannot change, set {known}"
        )
    if vertex.parallelism > known:
        raise SavepointError(
            f"operator {title} had max parallelism {known} when its state was written, this job has parallelism "
            f"{vertex.parallelism}: the number of key groups cannot change, set a parallelism of at most {known}"
        )
    chained.max_parallelism = known
    if chained is vertex.operators[0]:
        vertex.max_parallelism = known
        for edge in edges:
            if edge.target == vertex.id:
                edge.max_parallelism = known


def check_key_groups(now: list[JobVertex], vertices: list[JobVertex], edges: list[JobEdge]) -> None:
    """Reject rescaling above the number of key groups, which the first start of the job fixes."""
    known = {chained.operator_id: chained for vertex in now for chained in vertex.operators}
    for vertex in vertices:
        for chained in vertex.operators:
            before = known.get(chained.operator_id)
            if before is not None and before.operator is not None and before.operator.keyed:
                adopt_max_parallelism(before.max_parallelism, vertex, chained, edges)


# -- in the task ------------------------------------------------------------------------------------------------------


class TaskRestorer:
    """Loads the state of the tasks of one channel."""

    def __init__(
        self, plan: RestorePlan, vertices: Sequence[JobVertex], edges: dict[int, JobEdge], store: PageStore
    ) -> None:
        self._plan = plan
        self._vertices = {vertex.id: vertex for vertex in vertices}
        self._edges = edges
        self._store = store
        self._directory: Directory = directory_at(plan.location)

    def restore(self, vertex: JobVertex, subtask: int) -> TaskSnapshot:
        """Return the snapshot from which a task of the vertex starts. Its pages are in the store."""
        operators: dict[str, OperatorSnapshot] = {}
        for chained in vertex.operators:
            known = self._plan.manifest.operators.get(chained.operator_id)
            if known is not None:
                operators[chained.operator_id] = self._operator(known, chained, vertex, subtask)
        return TaskSnapshot(self._valve(vertex, subtask), operators)

    # -- operators ----------------------------------------------------------------------------------------------

    def _operator(
        self, known: OperatorManifest, chained: ChainedOperator, vertex: JobVertex, subtask: int
    ) -> OperatorSnapshot:
        same = known.parallelism == vertex.parallelism
        watermark = known.watermark(subtask if same else None)
        directory: PageDirectory | None = None
        if known.is_keyed and chained.operator is not None and chained.operator.keyed:
            groups = key_group_range(subtask, vertex.parallelism, chained.max_parallelism)
            directory = self._keyed(known, chained, groups)
        layout: dict[str, str] = {}
        records = RecordNotes({})
        for name, mode in known.operator_states.items():
            content = self._operator_state(known, name, mode, subtask, vertex.parallelism)
            if content is not None:
                what = f"operator state '{name}' of operator '{chained.name}'"
                blob = dumps(content, what)
                self._store.put(operator_state_page(chained.operator_id, name), blob)
                records.note(blob)
                layout[name] = mode
        types = {name: known_type for name, known_type in known.operator_types.items() if name in layout}
        last = MIN_WATERMARK if watermark is None else watermark
        return OperatorSnapshot(directory, layout, last, types, records.known)

    def _keyed(self, known: OperatorManifest, chained: ChainedOperator, groups: range) -> PageDirectory:
        layout = [(state["name"], state["kind"]) for state in known.keyed_states]
        types = {state["name"]: state["type"] for state in known.keyed_states if state["type"] is not None}
        directory = PageDirectory(layout=layout, types=types)
        builder = PageBuilder(chained.operator_id, chained.name, self._store, chained.max_parallelism, directory)
        files = [BlockFile(self._directory, description) for description in known.keyed_files]
        expected = sum(block.encoded for file in files for block in file.index() if block.tag in groups)
        names = [name for name, _ in layout]
        return builder.build(keyed_entries(files, groups, names, known.title, known.max_parallelism), expected)

    def _operator_state(self, known: OperatorManifest, name: str, mode: str, subtask: int, parallelism: int) -> Any:
        """Return a subtask's share of an operator state (rule 3.8)."""
        same = known.parallelism == parallelism
        if mode == RAW:
            return self._read(known, name, subtask) if same else None  # private to one task: no other task can read it
        if mode == BROADCAST:
            return self._read(known, name, subtask % known.parallelism)
        if mode == SPLIT and same:
            return self._read(known, name, subtask)
        parts = [self._read(known, name, index) for index in range(known.parallelism)]
        elements = [element for part in parts if part is not None for element in part]
        if mode != SPLIT:
            return elements
        share, more = divmod(len(elements), parallelism)
        start = subtask * share + min(subtask, more)
        return elements[start : start + share + (subtask < more)]

    def _read(self, known: OperatorManifest, name: str, subtask: int) -> Any:
        return read_operator_state(self._directory, known, name, subtask)

    # -- clocks -------------------------------------------------------------------------------------------------

    def _valve(self, vertex: JobVertex, subtask: int) -> Any:
        """Return the event times of the task and of its inputs, where the inputs have not changed."""
        known = self._plan.manifest.operators.get(vertex.operators[0].operator_id)
        if known is None or not known.event_times:
            return None
        same = known.parallelism == vertex.parallelism
        times = known.event_times
        last = times[str(subtask)] if same and str(subtask) in times else min(times.values())
        clocks: dict[Any, tuple[int, bool, bool]] = {}
        for edge_id in vertex.inputs:
            clocks.update(self._edge_clocks(known, self._edges[edge_id], subtask))
        return last, bool(clocks) and all(idle for _, idle, _ in clocks.values()), clocks

    def _edge_clocks(self, known: OperatorManifest, edge: JobEdge, subtask: int) -> dict[Any, tuple[int, bool, bool]]:
        name = edge_name(self._vertices, edge)
        found = next((i for i in known.inputs if (i["from"], i["tag"], i["index"]) == name), None)
        if found is None or not found["clocks"]:
            return {}
        senders = set(edge.senders_to(subtask))
        source = self._vertices[edge.source]
        if source.level == 0:
            splits = self._plan.manifest.sources.get(source.operators[0].operator_id, {"splits": {}})["splits"]
            return {
                (edge.id, split): (*found["clocks"][split], True)
                for split, (_, _, reader) in splits.items()
                if reader in senders and split in found["clocks"]
            }
        active = [watermark for watermark, idle in found["clocks"].values() if not idle]
        watermark = min(active, default=max(time for time, _ in found["clocks"].values()))
        return {(edge.id, str(sender)): (watermark, not active, True) for sender in senders}


def edge_name(vertices: dict[int, JobVertex], edge: JobEdge) -> tuple[str, str | None, int]:
    """Return the key of an input in savepoints: the sending operator, its side output, and a number."""
    source = vertices[edge.source].operators[edge.source_position]
    return source.operator_id, edge.tag_id, edge.input_index


def keyed_entries(
    files: list[BlockFile],
    groups: range | None,
    names: list[str],
    title: str,
    max_parallelism: int | None = None,
) -> Iterator[tuple[Any, ...]]:
    """Yield all entries of some key groups as (key, event timers, processing timers, values of the named states).

    If a max parallelism is given, each key must be in the key group of its hash.
    """
    for file in files:
        for block, data in file.read(groups):
            keys, event, processing, states = decode(data, f"state of operator {title}")
            if max_parallelism is not None:
                _check_keys(keys, block.tag, max_parallelism, title)
            blank = [None] * len(keys)
            columns = [event or blank, processing or blank, *(states.get(name) or blank for name in names)]
            yield from zip(keys, *columns, strict=True)


def _check_keys(keys: list[Any], group: int, max_parallelism: int, title: str) -> None:
    """Detect a class whose hash has changed with its fields: no record would find the state."""
    for key in keys:
        if not never_changes(key) and key_group_for(key, max_parallelism) != group:
            raise SavepointError(
                f"the savepoint has state of operator {title} under the key {shorten(key)}, which hashes to another "
                "key group than when it was written: keys cannot change, so restore the previous class"
            )


def read_operator_state(directory: Directory, known: OperatorManifest, name: str, subtask: int) -> Any:
    """Return one operator state of one subtask, or None."""
    for description in known.operator_files:
        if description["subtask"] != subtask:
            continue
        for tag, state in enumerate(description["states"]):
            if state["name"] == name:
                for _, data in BlockFile(directory, description).read(range(tag, tag + 1)):
                    return decode(data, f"operator state '{name}' of operator {known.title}")
    return None
