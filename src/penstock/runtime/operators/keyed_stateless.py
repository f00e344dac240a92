"""map, filter and flat_map on a keyed stream: each call runs with the key of its record (rule 5.3)."""

from __future__ import annotations

from collections.abc import Callable
from itertools import compress
from typing import Any

from penstock.runtime.operators.collector import Collector
from penstock.runtime.operators.emission import collect_results
from penstock.runtime.operators.failures import keyed_error
from penstock.runtime.operators.function_operator import FunctionOperator
from penstock.runtime.operators.operator import OperatorContext, Output
from penstock.runtime.operators.stateless import check_first_verdict
from penstock.runtime.records.batch import KeySelect, Timestamps, Values
from penstock.runtime.records.isolation import IMMUTABLE, protect
from penstock.runtime.state.backend import KeyedStateBackend


class KeyedFunctionOperator(FunctionOperator):
    """A function that may use keyed state."""

    keyed = True
    stateful = True

    def __init__(self, function: Any, key_selector: KeySelect) -> None:
        super().__init__(function)
        self.key_selector = key_selector

    def setup(self, context: OperatorContext, output: Output) -> None:
        """Look up the keyed backend."""
        super().setup(context, output)
        assert context.keyed_backend is not None
        self.backend: KeyedStateBackend = context.keyed_backend
        self.collector = Collector(context, output)


class KeyedMapOperator(KeyedFunctionOperator):
    """map with keyed state."""

    method = "map"

    def process_batch(self, values: Values, timestamps: Timestamps) -> None:
        """Call the function for each record, with its key."""
        results = call_keyed(self.backend, self.context, self.key_selector, self.call, values, "map")
        self.output.emit(results, timestamps)


class KeyedFilterOperator(KeyedFunctionOperator):
    """filter with keyed state."""

    method = "filter"

    def process_batch(self, values: Values, timestamps: Timestamps) -> None:
        """Call the function for each record, with its key."""
        verdicts = call_keyed(self.backend, self.context, self.key_selector, self.call, values, "filter")
        if verdicts:
            check_first_verdict(self.context, self.function, values[0], verdicts[0])
        # The function may have kept the record in its state. Apart from that, only the batch holds it.
        kept = [protect(value, 1) for value in compress(values, verdicts)]
        if timestamps is not None:
            timestamps = list(compress(timestamps, verdicts))
        if kept:
            self.output.emit(kept, timestamps)


class KeyedFlatMapOperator(KeyedFunctionOperator):
    """flat_map with keyed state."""

    method = "flat_map"

    def process_batch(self, values: Values, timestamps: Timestamps) -> None:
        """Collect the function's results for each record, with its key."""
        flat_map_keyed(
            self.backend, self.context, self.key_selector, self.collector, self.call, values, timestamps, "flat_map"
        )


def call_keyed(
    backend: KeyedStateBackend,
    context: OperatorContext,
    select: KeySelect,
    function: Callable[[Any], Any],
    values: Values,
    method: str,
) -> Values:
    """Return the function's result for each record. The key switch is inlined."""
    entries = backend.entries
    results: Values = []
    append = results.append
    try:
        for value in values:
            key = select(value)
            entry = entries.get(key)
            if entry is None:
                entry = backend.activate(key)
            backend.key = key
            backend.entry = entry
            result = function(value)
            append(result if type(result) in IMMUTABLE else protect(result))
    except Exception as error:
        raise keyed_error(context, error, method, select, value) from None
    backend.clear_current_key()
    return results


def flat_map_keyed(
    backend: KeyedStateBackend,
    context: OperatorContext,
    select: KeySelect,
    collector: Collector,
    function: Callable[[Any], Any],
    values: Values,
    timestamps: Timestamps,
    method: str,
) -> None:
    """Run a flat-map function over a batch, each record with its key, and emit the results.

    Results are consumed at once, so that a generator runs with the key of its own record.
    """
    entries, stamp = backend.entries, None
    try:
        for position, value in enumerate(values):
            key = select(value)
            entry = entries.get(key)
            if entry is None:
                entry = backend.activate(key)
            backend.key = key
            backend.entry = entry
            if timestamps is not None:
                stamp = timestamps[position]
            collect_results(collector, function(value), stamp)
    except Exception as error:
        raise keyed_error(context, error, method, select, value) from None
    backend.clear_current_key()
    collector.flush()
