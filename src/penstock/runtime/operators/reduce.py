"""Rolling reduce on a keyed stream: one update for every record (spec: 5.3).

The first record of a key is emitted as it is, then reduce(current, new) of each. State is never cleaned. In batch
execution only the final value of each key is emitted, before the last watermark.
"""

from __future__ import annotations

from typing import Any

from penstock.common.watermark import MAX_WATERMARK
from penstock.runtime.isolation import IMMUTABLE, protect
from penstock.runtime.operator import KeySelect, OperatorContext, Output, Timestamps, Values
from penstock.runtime.operators.failures import keyed_error
from penstock.runtime.operators.function_operator import FunctionOperator
from penstock.runtime.state.backend import KeyedStateBackend
from penstock.runtime.state.pages import FIRST_SLOT


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
        if context.batch_execution:
            self._stamp_slot = self.backend.register("reduced timestamp", "value state")

    def process_batch(self, values: Values, timestamps: Timestamps) -> None:
        """Fold each record into its key's value."""
        try:
            if self.context.batch_execution:
                self._fold(values, timestamps)
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

    def _fold(self, values: Values, timestamps: Timestamps) -> None:
        backend, slot, select = self.backend, self._slot, self.key_selector
        reduce = self.call
        try:
            for position, value in enumerate(values):
                backend.set_current_key(select(value))
                entry = backend.entry
                current = entry[slot]
                entry[slot] = value if current is None else reduce(current, value)
                entry[0].dirty = True
                if timestamps is not None:
                    entry[self._stamp_slot] = timestamps[position]
        except Exception as error:
            raise keyed_error(self.context, error, "reduce", select, value) from None

    def process_watermark(self, watermark: int) -> None:
        """In batch execution results go out before the last watermark: downstream must not take them for late."""
        if watermark == MAX_WATERMARK:
            self._emit_results()
        super().process_watermark(watermark)

    def end_input(self) -> None:
        """Results of a batch job that has no watermarks at all."""
        self._emit_results()

    def _emit_results(self) -> None:
        if not self.context.batch_execution:
            return
        backend = self.backend
        values: Values = []
        stamps: list[Any] = []
        for key in list(backend.keys(self._slot - FIRST_SLOT)):
            backend.set_current_key(key)
            values.append(backend.entry[self._slot])
            stamps.append(backend.entry[self._stamp_slot])
            backend.entry[self._slot] = backend.entry[self._stamp_slot] = None
            backend.entry[0].dirty = True
        backend.clear_current_key()
        if values:
            self.output.emit(values, stamps if any(stamp is not None for stamp in stamps) else None)
