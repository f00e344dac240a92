"""map and flat_map over two connected streams (rule 5.4). On keyed streams, both sides share the state of a key.

As in PyFlink, a co-map that returns None emits nothing: often one of the two sides has no output.
"""

from __future__ import annotations

from functools import partial
from itertools import compress
from operator import is_
from typing import Any

from penstock.core.functions import CoFlatMapFunction, CoMapFunction
from penstock.runtime.operators.collector import Collector
from penstock.runtime.operators.failures import batch_error
from penstock.runtime.operators.function_operator import FunctionOperator
from penstock.runtime.operators.keyed_stateless import call_keyed, flat_map_keyed
from penstock.runtime.operators.operator import OperatorContext, Output
from penstock.runtime.operators.stateless import flat_map_records, map_records
from penstock.runtime.records.batch import KeySelect, Timestamps, Values
from penstock.runtime.state.backend import KeyedStateBackend

_is_none = partial(is_, None)


class CoMapOperator(FunctionOperator):
    """Emits one record or none for every record of either stream."""

    function: CoMapFunction

    def process_batch(self, values: Values, timestamps: Timestamps) -> None:
        """Records of the first stream."""
        self._map(self.function.map1, "map1", values, timestamps)

    def process_batch2(self, values: Values, timestamps: Timestamps) -> None:
        """Records of the second stream."""
        self._map(self.function.map2, "map2", values, timestamps)

    def _map(self, function: Any, method: str, values: Values, timestamps: Timestamps) -> None:
        emit_but_none(self.output, map_batch(self.context, function, method, values), timestamps)


class CoFlatMapOperator(FunctionOperator):
    """Emits any number of records for every record of either stream."""

    function: CoFlatMapFunction

    def setup(self, context: OperatorContext, output: Output) -> None:
        """Create a collector, for side outputs."""
        super().setup(context, output)
        self.collector = Collector(context, output)

    def process_batch(self, values: Values, timestamps: Timestamps) -> None:
        """Records of the first stream."""
        flat_map_records(self.collector, self.context, self.function.flat_map1, values, timestamps, "flat_map1")

    def process_batch2(self, values: Values, timestamps: Timestamps) -> None:
        """Records of the second stream."""
        flat_map_records(self.collector, self.context, self.function.flat_map2, values, timestamps, "flat_map2")


class KeyedCoOperator(FunctionOperator):
    """Base of keyed operators with two inputs: one key selector per input.

    One of them may be missing. That input, usually a broadcast one, is processed without a current key.
    """

    keyed = True
    stateful = True

    def __init__(self, function: Any, key_selector1: KeySelect | None, key_selector2: KeySelect | None) -> None:
        super().__init__(function)
        self.key_selector = key_selector1
        self.key_selector2 = key_selector2

    def setup(self, context: OperatorContext, output: Output) -> None:
        """Look up the keyed backend."""
        super().setup(context, output)
        assert context.keyed_backend is not None
        self.backend: KeyedStateBackend = context.keyed_backend
        self.collector = Collector(context, output)


class KeyedCoMapOperator(KeyedCoOperator):
    """co-map with keyed state."""

    function: CoMapFunction

    def process_batch(self, values: Values, timestamps: Timestamps) -> None:
        """Records of the first stream."""
        self._map(self.key_selector, self.function.map1, "map1", values, timestamps)

    def process_batch2(self, values: Values, timestamps: Timestamps) -> None:
        """Records of the second stream."""
        self._map(self.key_selector2, self.function.map2, "map2", values, timestamps)

    def _map(
        self, select: KeySelect | None, function: Any, method: str, values: Values, timestamps: Timestamps
    ) -> None:
        if select is None:
            results = map_batch(self.context, function, method, values)
        else:
            results = call_keyed(self.backend, self.context, select, function, values, method)
        emit_but_none(self.output, results, timestamps)


class KeyedCoFlatMapOperator(KeyedCoOperator):
    """co-flat-map with keyed state."""

    function: CoFlatMapFunction

    def process_batch(self, values: Values, timestamps: Timestamps) -> None:
        """Records of the first stream."""
        self._flat_map(self.key_selector, self.function.flat_map1, "flat_map1", values, timestamps)

    def process_batch2(self, values: Values, timestamps: Timestamps) -> None:
        """Records of the second stream."""
        self._flat_map(self.key_selector2, self.function.flat_map2, "flat_map2", values, timestamps)

    def _flat_map(
        self, select: KeySelect | None, function: Any, method: str, values: Values, timestamps: Timestamps
    ) -> None:
        if select is None:
            flat_map_records(self.collector, self.context, function, values, timestamps, method)
        else:
            flat_map_keyed(self.backend, self.context, select, self.collector, function, values, timestamps, method)


def map_batch(context: OperatorContext, function: Any, method: str, values: Values) -> Values:
    """Return the function's result for each record, without a key."""
    rest = iter(values)
    try:
        return map_records(function, rest)
    except Exception as error:
        raise batch_error(context, error, method, values, rest) from None


def emit_but_none(output: Output, results: Values, timestamps: Timestamps) -> None:
    """Emit the results, except those that are None."""
    if any(map(_is_none, results)):
        kept = [result is not None for result in results]
        results = list(compress(results, kept))
        timestamps = None if timestamps is None else list(compress(timestamps, kept))
    if results:
        output.emit(results, timestamps)
