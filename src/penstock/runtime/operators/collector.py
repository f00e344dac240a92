"""Collects the records that user functions emit during a batch, main and side outputs, and emits them together."""

from __future__ import annotations

from typing import Any

from penstock.common.errors import InvalidProgramError, shorten
from penstock.core.output_tag import OutputTag
from penstock.runtime.operators.operator import DISCARD, OperatorContext, Output
from penstock.runtime.operators.type_check import typed_output
from penstock.runtime.records.batch import Timestamps, Values
from penstock.runtime.records.isolation import copy_of, deeply_immutable


class Collector:
    """Output lists of one operator. Hot loops append to `values` and `timestamps` directly."""

    __slots__ = ("_context", "_output", "_side_outputs", "_sides", "timestamps", "values")

    def __init__(self, context: OperatorContext, output: Output) -> None:
        self._context = context
        self._output = output
        self._sides: dict[str, tuple[Values, list[Any]]] = {}
        self._side_outputs: dict[str, Output] = {}
        self.values: Values = []
        self.timestamps: Timestamps = None

    def collect(self, value: Any, timestamp: int | None) -> None:
        """Collect one record, which may be PyFlink's `(tag, value)` pair for a side output."""
        if type(value) is tuple and len(value) == 2 and type(value[0]) is OutputTag:
            self.side(value[0], value[1], timestamp)
            return
        if timestamp is None:
            if self.timestamps is not None:
                self.timestamps.append(None)
        else:
            if self.timestamps is None:
                self.timestamps = [None] * len(self.values)
            self.timestamps.append(timestamp)
        self.values.append(value)

    def side(self, tag: OutputTag, value: Any, timestamp: int | None) -> None:
        """Collect a copy of one record for a side output: the function may change it later."""
        if not isinstance(tag, OutputTag):
            raise InvalidProgramError(
                f"operator '{self._context.operator_name}' emitted to a side output with {shorten(tag)}: "
                "the first argument of output() must be an OutputTag"
            )
        lists = self._sides.get(tag.tag_id)
        if lists is None:
            lists = self._sides[tag.tag_id] = ([], [])
            if tag.tag_id not in self._side_outputs:
                self._side_outputs[tag.tag_id] = self._side_output(tag)
        lists[0].append(value if deeply_immutable(value) else copy_of(value))
        lists[1].append(timestamp)

    def _side_output(self, tag: OutputTag) -> Output:
        output = self._context.side_output(tag.tag_id)
        if output is DISCARD:
            return output
        return typed_output(output, tag.type_info, self._context, f"side output '{tag.tag_id}'")

    def flush(self) -> None:
        """Emit the collected records."""
        if self.values:
            values, timestamps = self.values, self.timestamps
            self.values, self.timestamps = [], None
            self._output.emit(values, timestamps)
        if self._sides:
            sides, self._sides = self._sides, {}
            for tag_id, (values, stamps) in sides.items():
                self._side_outputs[tag_id].emit(values, stamps if stamps.count(None) < len(stamps) else None)
