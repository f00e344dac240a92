"""The manifest of a savepoint: one JSON file that describes its content, written when all other files are complete."""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass, field
from typing import Any

from penstock.common.errors import SavepointError, shorten
from penstock.runtime.savepoint.blocks import BlockFile
from penstock.runtime.savepoint.storage import Directory, directory_at
from penstock.runtime.state.state_types import PYTHON, merged

METADATA = "_metadata"
FORMAT = "penstock-savepoint"
VERSION = 1

Json = dict[str, Any]


@dataclass(slots=True)
class OperatorManifest:
    """The state of one operator."""

    operator_id: str
    uid: str | None
    name: str
    parallelism: int
    max_parallelism: int
    keyed_states: list[Json] = field(default_factory=list)  # name, kind, type
    keyed_files: list[Json] = field(default_factory=list)  # path, size, crc32, blocks, subtask, keys, key_types, bytes
    operator_states: dict[str, str] = field(default_factory=dict)  # name -> mode
    operator_files: list[Json] = field(default_factory=list)  # ..., states: [name, mode, count, type] by tag
    watermarks: dict[str, int] = field(default_factory=dict)  # subtask -> event time
    event_times: dict[str, int] = field(default_factory=dict)  # subtask -> event time of its task, for heads of chains
    inputs: list[Json] = field(default_factory=list)  # from, tag, index, clocks: {channel: [watermark, idle]}, key

    @property
    def is_keyed(self) -> bool:
        """Whether there is keyed state."""
        return bool(self.keyed_states or self.keyed_files)

    @property
    def has_state(self) -> bool:
        """Whether state would be lost without this operator."""
        return any(file["keys"] for file in self.keyed_files) or any(
            mode != "raw" for mode in self.operator_states.values()
        )

    @property
    def operator_types(self) -> dict[str, Json]:
        """The types of operator states. Older savepoints have none."""
        types: dict[str, Json] = {}
        for file in self.operator_files:
            for state in file["states"]:
                if state.get("type") is not None:
                    known = types.get(state["name"])
                    types[state["name"]] = state["type"] if known is None else merged(known, state["type"])
        return types

    @property
    def key_type(self) -> Json:
        """The declared type of the keys, or the types found in them."""
        declared = next((each["key"] for each in self.inputs if "key" in each), None)
        return declared or {"type": PYTHON, "seen": [name for f in self.keyed_files for name in f.get("key_types", ())]}

    @property
    def title(self) -> str:
        """The operator in messages."""
        return f"'{self.name}' (uid {self.uid!r})" if self.uid else f"'{self.name}' (generated id {self.operator_id})"

    def watermark(self, subtask: int | None = None) -> int | None:
        """Return the event time of a subtask, or the minimum over all subtasks."""
        if subtask is not None and str(subtask) in self.watermarks:
            return self.watermarks[str(subtask)]
        return min(self.watermarks.values(), default=None)


@dataclass(slots=True)
class Manifest:
    """The content of a manifest."""

    job_id: str = ""
    job_name: str = ""
    checkpoint_id: int = 0
    processing_time: int = 0
    drained: bool = False
    compression: bool = False
    operators: dict[str, OperatorManifest] = field(default_factory=dict)
    sources: dict[str, Json] = field(default_factory=dict)  # operator id -> uid, name, parallelism, splits

    def find(self, uid: str) -> OperatorManifest:
        """Return the operator with this uid, generated id or (if it is unique) name."""
        for operator in self.operators.values():
            if uid in (operator.uid, operator.operator_id):
                return operator
        named = [operator for operator in self.operators.values() if operator.name == uid]
        if len(named) == 1:
            return named[0]
        known = ", ".join(sorted(operator.title for operator in self.operators.values())) or "none"
        raise SavepointError(f"the savepoint has no operator with uid '{uid}'; it has: {known}")

    def find_source(self, uid: str) -> str:
        """Return the operator id of the source with this uid, generated id or name."""
        for source_id, source in self.sources.items():
            if uid in (source["uid"], source_id, source["name"]):
                return source_id
        known = ", ".join(f"'{s['name']}' (uid {s['uid'] or source_id!r})" for source_id, s in self.sources.items())
        raise SavepointError(f"the savepoint has no source with uid '{uid}'; it has: {known or 'none'}")

    def files(self) -> list[Json]:
        """Return the descriptions of all data files."""
        found = [
            file for operator in self.operators.values() for file in (*operator.keyed_files, *operator.operator_files)
        ]
        return found + [s["spark"]["file"] for s in self.sources.values() if "file" in (s.get("spark") or {})]

    # -- as JSON ------------------------------------------------------------------------------------------------

    def to_json(self) -> Json:
        """Return the manifest as JSON."""
        content: Json = {
            "format": FORMAT,
            "version": VERSION,
            "job": {"id": self.job_id, "name": self.job_name},
            "checkpoint_id": self.checkpoint_id,
            "processing_time": self.processing_time,
            "drained": self.drained,
            "compression": self.compression,
            "operators": [_operator_json(operator) for operator in self.operators.values()],
            "sources": self.sources,
        }
        content["crc32"] = _checksum(content)
        return content

    @staticmethod
    def from_json(content: Json, location: str) -> Manifest:
        """Create the manifest from JSON."""
        if content.get("format") != FORMAT:
            raise SavepointError(f"{location} is not a savepoint of Penstock")
        if content.get("version") != VERSION:
            raise SavepointError(
                f"the savepoint in {location} has format version {content.get('version')}, this Penstock reads "
                f"version {VERSION}: use the Penstock that wrote it, or a newer one"
            )
        expected = content.pop("crc32", None)
        if expected != _checksum(content):
            raise SavepointError(
                f"the file {METADATA} of the savepoint in {location} is damaged: it does not match its checksum"
            )
        operators = [OperatorManifest(**{_FIELDS.get(k, k): v for k, v in o.items()}) for o in content["operators"]]
        return Manifest(
            job_id=content["job"]["id"],
            job_name=content["job"]["name"],
            checkpoint_id=content["checkpoint_id"],
            processing_time=content["processing_time"],
            drained=content["drained"],
            compression=content["compression"],
            operators={operator.operator_id: operator for operator in operators},
            sources=content["sources"],
        )

    def write(self, directory: Directory) -> None:
        """Write the manifest, which completes the savepoint."""
        with directory.create(METADATA) as stream:
            stream.write(json.dumps(self.to_json(), indent=1).encode())


_FIELDS = {"id": "operator_id"}


def _operator_json(operator: OperatorManifest) -> Json:
    return {
        "id": operator.operator_id,
        "uid": operator.uid,
        "name": operator.name,
        "parallelism": operator.parallelism,
        "max_parallelism": operator.max_parallelism,
        "keyed_states": operator.keyed_states,
        "keyed_files": operator.keyed_files,
        "operator_states": operator.operator_states,
        "operator_files": operator.operator_files,
        "watermarks": operator.watermarks,
        "event_times": operator.event_times,
        "inputs": operator.inputs,
    }


def _checksum(content: Json) -> int:
    return zlib.crc32(json.dumps(content, sort_keys=True, separators=(",", ":")).encode())


def read_manifest(location: str) -> Manifest:
    """Read the manifest of a savepoint."""
    directory = directory_at(location)
    if directory.size(METADATA) is None:
        raise SavepointError(
            f"there is no complete savepoint in {location}: it has no file {METADATA}. Give the directory that "
            "was reported for the savepoint"
        )
    with directory.open(METADATA) as stream:
        data = stream.read()
    try:
        content = json.loads(data)
        if not isinstance(content, dict):
            raise TypeError(type(content).__name__)  # noqa: TRY301
        return Manifest.from_json(content, location)
    except SavepointError:
        raise
    except (ValueError, TypeError, KeyError) as error:
        raise SavepointError(
            f"the file {METADATA} of the savepoint in {location} is damaged: {shorten(error)}"
        ) from None


def verify(location: str) -> Manifest:
    """Read a savepoint completely and compare every checksum."""
    manifest = read_manifest(location)
    directory = directory_at(location)
    for description in manifest.files():
        BlockFile(directory, description).verify()
    return manifest
