"""KeyedCoProcessFunction: two connected keyed streams that share state and timers of a key (rule 6.3)."""

from __future__ import annotations

from penstock.core.functions import KeyedCoProcessFunction
from penstock.runtime.operators.keyed_timers import KeyedContextBase, KeyedTimerOperator
from penstock.runtime.records.batch import KeySelect, Timestamps, Values


class KeyedCoProcessContext(KeyedContextBase, KeyedCoProcessFunction.OnTimerContext):
    """The `ctx` of process_element1, process_element2 and on_timer."""


class KeyedCoProcessOperator(KeyedTimerOperator):
    """Runs a KeyedCoProcessFunction."""

    function: KeyedCoProcessFunction

    def __init__(self, function: KeyedCoProcessFunction, key_selector1: KeySelect, key_selector2: KeySelect) -> None:
        super().__init__(function)
        self.key_selector = key_selector1
        self.key_selector2 = key_selector2

    def create_context(self) -> KeyedCoProcessContext:
        """Create the `ctx`: keys, clocks, timers, side outputs."""
        return KeyedCoProcessContext(self)

    def process_batch(self, values: Values, timestamps: Timestamps) -> None:
        """Records of the first stream."""
        self.run_keyed(self.key_selector, self.function.process_element1, "process_element1", values, timestamps)

    def process_batch2(self, values: Values, timestamps: Timestamps) -> None:
        """Records of the second stream."""
        self.run_keyed(self.key_selector2, self.function.process_element2, "process_element2", values, timestamps)
