"""Rolling reduce on a keyed stream: one update for every record (spec: 5.3).

The first record of a key is emitted as it is, then reduce(current, new) of each. State is never cleaned. In batch
execution only the final value of each key is emitted, before the last watermark.
"""

from __future__ import annotations

import copy
import pickle
from typing import Any

from penstock.common.watermark import MAX_WATERMARK
from penstock.runtime.operator import KeySelect, OperatorContext, Output, StreamOperator, Timestamps, Values
from penstock.runtime.operators.failures import keyed_error
from penstock.runtime.operators.rolling import RollingAggregation
from penstock.runtime.operators.udf import close_function, method_of, open_function
from penstock.runtime.state.backend import KeyedStateBackend
from penstock.runtime.state.pages import FIRST_SLOT

_IMMUTABLE = frozenset({int, float, bool, str, bytes, tuple, frozenset, complex})


class ReduceOperator(StreamOperator):
    """Keeps one value per key."""

    keyed = True
    stateful = True

    def __init__(self, function: Any, key_selector: KeySelect) -> None:
        self.function = function
        self.key_selector = key_selector

    def user_functions(self) -> list[Any]:
        """The reduce function."""
        return [self.function]

    def setup(self, context: OperatorContext, output: Output) -> None:
        """Register the state."""
        super().setup(context, output)
        assert context.keyed_backend is not None
        self.backend: KeyedStateBackend = context.keyed_backend
        self._slot = self.backend.register("reduced value", "reducing state")
        if context.batch_execution:
            self._stamp_slot = self.backend.register("reduced timestamp", "value state")

    def open(self) -> None:
        """Open the function."""
        open_function(self.function, self.context)

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
        entries, reduce = backend.entries, method_of(self.function, "reduce")
        pure = isinstance(self.function, RollingAggregation)  # ours never change a record in place
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
                if current is None:
                    # The emitted record must not change when a later reduce changes the state in place.
                    entry[slot] = value if pure or type(value) in _IMMUTABLE else clone(value)
                    append(value)
                else:
                    reduced = entry[slot] = reduce(current, value)
                    append(reduced if pure or reduced is not current else clone(reduced))
                entry[0].dirty = True
        except Exception as error:
            raise keyed_error(self.context, error, "reduce", select, value) from None
        return out

    def _fold(self, values: Values, timestamps: Timestamps) -> None:
        backend, slot, select = self.backend, self._slot, self.key_selector
        reduce = method_of(self.function, "reduce")
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
        """In batch execution the results go out before the last watermark, so that nothing downstream takes them for late."""
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

    def close(self) -> None:
        """Close the function."""
        close_function(self.function)


def clone(value: Any) -> Any:
    """A copy that shares nothing with the original.

    >>> value = [1, [2]]
    >>> clone(value)[1] is value[1]
    False
    """
    try:
        return pickle.loads(pickle.dumps(value, 5))
    except Exception:  # a class that pickle cannot name
        return copy.deepcopy(value)
