"""Changes of databases in JSON: ``debezium-json``, ``canal-json`` and ``maxwell-json``."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, ClassVar

from penstock.runtime.table.batch import DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE
from penstock.table.formats.base import Change, TableFormat, table_format
from penstock.table.formats.json import JsonFormat
from penstock.table.plan.nodes.base import ALL_CHANGES, Field

_JSON_OPTIONS: dict[str, str | None] = {
    key: value for key, value in JsonFormat.options.items() if key != "fail-on-missing-field"
}


class _ChangelogJson(TableFormat):
    """Rows in the format ``json`` inside an envelope."""

    options: ClassVar[dict[str, str | None]] = _JSON_OPTIONS
    changelog = ALL_CHANGES

    def __init__(self, fields: Sequence[Field], options: dict[str, str]) -> None:
        super().__init__(fields, options)
        self._json = JsonFormat(fields, {key: value for key, value in options.items() if key in _JSON_OPTIONS})

    def decode(self, message: bytes) -> Sequence[Change]:
        """Decode the changes of an envelope. An empty message has none."""
        if not message or not message.strip():
            return ()
        return self.changes(self._json.parse(message))

    def changes(self, envelope: dict[str, Any]) -> Sequence[Change]:
        """Return the changes of an envelope."""
        raise NotImplementedError

    def envelope(self, values: dict[str, Any], *, added: bool) -> dict[str, Any]:
        """Create an envelope for a row that is added or removed."""
        raise NotImplementedError

    def encode(self, kind: int, values: Sequence[Any]) -> bytes:
        """Encode a change. An update is a removal and an addition."""
        envelope = self.envelope(self._json.value(values), added=kind in (INSERT, UPDATE_AFTER))
        return json.dumps(envelope, ensure_ascii=False, separators=(",", ":")).encode()

    def _updates(self, before: dict[str, Any], after: dict[str, Any]) -> list[Change]:
        return [(UPDATE_BEFORE, self._json.row(before)), (UPDATE_AFTER, self._json.row(after))]


@table_format("debezium-json")
class DebeziumJson(_ChangelogJson):
    """``{"before": ..., "after": ..., "op": "c" | "u" | "d" | "r"}``"""

    options: ClassVar[dict[str, str | None]] = {**_JSON_OPTIONS, "schema-include": "false"}

    def changes(self, envelope: dict[str, Any]) -> Sequence[Change]:
        """Return the changes by the operation."""
        if self.flag("schema-include"):
            envelope = envelope["payload"]
        before, after, operation = envelope.get("before"), envelope.get("after"), envelope.get("op")
        if operation in ("c", "r"):
            return [(INSERT, self._json.row(after))]
        if operation in ("u", "d") and before is None:
            raise ValueError(
                f'"before" is null in a message with op "{operation}": for PostgreSQL set REPLICA IDENTITY FULL'
            )
        if operation == "u":
            return self._updates(before or {}, after or {})
        if operation == "d":
            return [(DELETE, self._json.row(before))]
        raise ValueError(f'unknown "op" value {operation!r}')

    def envelope(self, values: dict[str, Any], *, added: bool) -> dict[str, Any]:
        """Create an envelope with the operation c or d."""
        return {"before": None if added else values, "after": values if added else None, "op": "c" if added else "d"}


@table_format("canal-json")
class CanalJson(_ChangelogJson):
    """``{"data": [...], "old": [...], "type": "INSERT" | "UPDATE" | "DELETE"}``; "old" has only the changed fields."""

    options: ClassVar[dict[str, str | None]] = {**_JSON_OPTIONS, "database.include": None, "table.include": None}

    def changes(self, envelope: dict[str, Any]) -> Sequence[Change]:
        """Return the changes by the type."""
        for what in ("database", "table"):
            wanted = self.given.get(f"{what}.include")
            if wanted is not None and not re.fullmatch(wanted, str(envelope.get(what) or "")):
                return ()
        kind, rows = envelope.get("type"), envelope.get("data") or []
        match kind:
            case "INSERT":
                return [(INSERT, self._json.row(row)) for row in rows]
            case "DELETE":
                return [(DELETE, self._json.row(row)) for row in rows]
            case "UPDATE":
                old = envelope.get("old") or []
                pairs = zip(rows, old, strict=True)
                return [change for row, before in pairs for change in self._updates({**row, **before}, row)]
            case "CREATE":
                return ()
        raise ValueError(f'unknown "type" value {kind!r}')

    def envelope(self, values: dict[str, Any], *, added: bool) -> dict[str, Any]:
        """Create an envelope with the type INSERT or DELETE."""
        return {"data": [values], "type": "INSERT" if added else "DELETE"}


@table_format("maxwell-json")
class MaxwellJson(_ChangelogJson):
    """``{"data": ..., "old": ..., "type": "insert" | "update" | "delete"}``; "old" has only the changed fields."""

    def changes(self, envelope: dict[str, Any]) -> Sequence[Change]:
        """Return the changes by the type."""
        kind, row = envelope.get("type"), envelope.get("data") or {}
        match kind:
            case "insert" | "bootstrap-insert":
                return [(INSERT, self._json.row(row))]
            case "delete":
                return [(DELETE, self._json.row(row))]
            case "update":
                return self._updates({**row, **(envelope.get("old") or {})}, row)
        raise ValueError(f'unknown "type" value {kind!r}')

    def envelope(self, values: dict[str, Any], *, added: bool) -> dict[str, Any]:
        """Create an envelope with the type insert or delete."""
        return {"data": values, "type": "insert" if added else "delete"}
