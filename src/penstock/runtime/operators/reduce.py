"""Rolling reduce on a keyed stream: one update for every record (rule 5.3).

The first record of a key is emitted unchanged, then the result of reduce(current, new) for each record. State is never
cleared. In batch execution, only the final value of each key is emitted, after its last record. Its timestamp is the
maximum.
"""

from __future__ import annotations

from typing import Any

from penstock.common.watermark import MAX_WATERMARK
from penstock.runtime.operators.failures import keyed_error
from penstock.runtime.operators.function_operator import FunctionOperator
from penstock.runtime.operators.operator import OperatorContext, Output
from penstock.runtime.records.batch import KeySelect, Timestamps, Values
from penstock.runtime.records.isolation import IMMUTABLE, protect
from penstock.runtime.state.backend import KeyedStateBackend


class ReduceOperator(FunctionOperator):
    """Keeps one value per key."""

    keyed = True
    stateful = True
    method = "reduce"

    def __init__(self, function: Any, key_selector: KeySelect) -> None:
        super().__init__(function)
        self.key_selector = key_selector

    def setup(self, context: OperatorContext, output: Output) -> None:
        """Register the state."""
        super().setup(context, output)
        assert context.keyed_backend is not None
        self.backend: KeyedStateBackend = context.keyed_backend
        self._slot = self.backend.register("reduced value", "reducing state")
        self._results: Values = []  # final values in batch execution
        if context.batch_execution:
            self._timers = context.create_timer_service(self._end_key, self._end_key)

    def process_batch(self, values: Values, timestamps: Timestamps) -> None:
        """Reduce each record into the value of its key."""
        try:
            if self.context.batch_execution:
                self._fold(values)
            else:
                self.output.emit(self._fold_and_emit(values), timestamps)
        finally:
            self.backend.clear_current_key()

    def _fold_and_emit(self, values: Values) -> Values:
        backend, slot, select = self.backend, self._slot, self.key_selector
        entries, reduce = backend.entries, self.call
        out: Values = []
        append = out.append
        try:
            for value in values:
                key = select(value)
                entry = entries.get(key)
                if entry is None:
                    entry = backend.activate(key)
                backend.key = key
                backend.entry = entry
                current = entry[slot]
                reduced = entry[slot] = value if current is None else reduce(current, value)
                append(
                    reduced if type(reduced) in IMMUTABLE else protect(reduced)
                )  # state keeps the original, which a later reduce may change
                entry[0].dirty = True
        except Exception as error:
            raise keyed_error(self.context, error, "reduce", select, value) from None
        return out

    def _fold(self, values: Values) -> None:
        backend, slot, select = self.backend, self._slot, self.key_selector
        reduce = self.call
        try:
            for value in values:
                backend.set_current_key(select(value))
                entry = backend.entry
                current = entry[slot]
                if current is None:
                    self._timers.register_event_time_timer(MAX_WATERMARK)
                entry[slot] = value if current is None else reduce(current, value)
                entry[0].dirty = True
        except Exception as error:
            raise keyed_error(self.context, error, "reduce", select, value) from None

    def _end_key(self, timestamp: int, key: Any, namespace: Any) -> None:
        entry = self.backend.entry
        if entry[self._slot] is not None:
            self._results.append(entry[self._slot])
            entry[self._slot] = None
            entry[0].dirty = True

    def flush(self) -> None:
        """Emit the results of the keys that have ended, with the maximum timestamp."""
        if self._results:
            results, self._results = self._results, []
            self.output.emit(results, [MAX_WATERMARK] * len(results))
