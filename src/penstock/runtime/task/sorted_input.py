"""Keyed input of a batch job: one key after the other, each in time order (Flink's BATCH execution).

All records of a key are processed, then all its timers fire as if time had ended. The next key starts at the minimum
watermark again. No record is ever late.
"""

from __future__ import annotations

from typing import Any

from penstock.common.watermark_strategy import MIN_WATERMARK
from penstock.runtime.exchange.partitioner import key_error
from penstock.runtime.operators.operator import StreamOperator
from penstock.runtime.records.batch import KeySelect, Timestamps, Values

_NO_TIME = MIN_WATERMARK


class SortedKeyedInput:
    """Collects the input of a keyed operator, and replays it grouped by key."""

    def __init__(self, operator: StreamOperator) -> None:
        self._operator = operator
        self._by_key: dict[Any, list[tuple[int, int, Any, Any]]] = {}
        self._arrival = 0

    def add(self, input_index: int, values: Values, timestamps: Timestamps) -> None:
        """Add records of one input. A broadcast input has no keys: it is processed at once, before all keyed input."""
        selectors: list[KeySelect | None] = self._operator.key_selectors()
        select = selectors[input_index] if input_index < len(selectors) else None
        if select is None:
            process = self._operator.process_batch if input_index == 0 else self._operator.process_batch2
            process(values, timestamps)
            return
        stamps = timestamps if timestamps is not None else [None] * len(values)
        for value, stamp in zip(values, stamps, strict=True):
            try:
                records = self._by_key.setdefault(select(value), [])
            except Exception as error:
                raise key_error(error, value, self._operator.context.operator_name) from error
            records.append((input_index, self._arrival, value, stamp))
            self._arrival += 1

    def run(self) -> None:
        """Process the collected records key by key."""
        operator = self._operator
        by_key, self._by_key = self._by_key, {}
        for records in by_key.values():
            records.sort(key=lambda r: (_NO_TIME if r[3] is None else r[3], r[0], r[1]))
            start = 0
            for end in range(1, len(records) + 1):
                if end == len(records) or records[end][0] != records[start][0]:
                    self._process(records[start:end])
                    start = end
            self._end_key(operator)

    def _process(self, run: list[tuple[int, int, Any, Any]]) -> None:
        values = [record[2] for record in run]
        stamps: Timestamps = [record[3] for record in run]
        if stamps is not None and stamps.count(None) == len(stamps):
            stamps = None
        process = self._operator.process_batch if run[0][0] == 0 else self._operator.process_batch2
        process(values, stamps)

    def _end_key(self, operator: StreamOperator) -> None:
        for service in operator.context.timer_services:
            service.end_key()
        if operator.context.keyed_backend is not None:
            operator.context.keyed_backend.clear_current_key()
        operator.flush()
