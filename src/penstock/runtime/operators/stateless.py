"""map, filter and flat_map without keyed state (rule 5.2).

The comprehensions are the inner loops of stateless jobs: they do nothing per record except call the user's function.
Records that a function object emits are protected against later changes by it. A plain function cannot keep them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import compress
from typing import Any

from penstock.core.functions import Function
from penstock.core.output_tag import OutputTag
from penstock.core.return_values import check_verdict
from penstock.runtime.operators.collector import Collector
from penstock.runtime.operators.emission import collect_results
from penstock.runtime.operators.failures import batch_error
from penstock.runtime.operators.function_operator import FunctionOperator
from penstock.runtime.operators.operator import OperatorContext, Output
from penstock.runtime.operators.user_errors import user_error
from penstock.runtime.records.batch import Timestamps, Values
from penstock.runtime.records.isolation import IMMUTABLE, protect


class MapOperator(FunctionOperator):
    """Emits one record for every record."""

    method = "map"

    def process_batch(self, values: Values, timestamps: Timestamps) -> None:
        """Call the function for each record."""
        function, rest = self.call, iter(values)
        try:
            if isinstance(self.function, Function):
                results = map_records(function, rest)
            else:
                results = [function(value) for value in rest]
        except Exception as error:
            raise batch_error(self.context, error, "map", values, rest) from None
        self.output.emit(results, timestamps)


class FilterOperator(FunctionOperator):
    """Keeps the records for which the function returns true."""

    method = "filter"

    def process_batch(self, values: Values, timestamps: Timestamps) -> None:
        """Call the function for each record."""
        if not values:
            return
        function, rest = self.call, iter(values)
        stamps: Timestamps = None
        try:
            first = function(next(rest))
            check_first_verdict(self.context, self.function, values[0], first)
            if timestamps is None:
                kept = [values[0]] if first else []
                kept += [value for value in rest if function(value)]
            else:
                verdicts = [first, *[function(value) for value in rest]]
                kept, stamps = list(compress(values, verdicts)), list(compress(timestamps, verdicts))
        except Exception as error:
            raise batch_error(self.context, error, "filter", values, rest) from None
        if isinstance(self.function, Function):
            kept = [protect(value, 2) for value in kept]  # besides the function, only `values` and `kept` hold it
        if kept:
            self.output.emit(kept, stamps)


def check_first_verdict(context: OperatorContext, function: Any, value: Any, verdict: Any) -> None:
    """Check what a filter returned for the first record of a batch: a wrong type is the same for all records."""
    if type(verdict) is not bool:
        check_verdict(verdict, function, "filter", operator_name=context.operator_name, record=value)


class FlatMapOperator(FunctionOperator):
    """Emits any number of records for every record, from an iterable, a generator, or None for nothing."""

    method = "flat_map"

    def setup(self, context: OperatorContext, output: Output) -> None:
        """Create a collector, for side outputs."""
        super().setup(context, output)
        self.collector = Collector(context, output)

    def process_batch(self, values: Values, timestamps: Timestamps) -> None:
        """Collect the function's results for each record."""
        if isinstance(self.function, Function):
            flat_map_records(self.collector, self.context, self.call, values, timestamps, "flat_map")
        else:
            flat_map_plain(self.collector, self.context, self.call, values, timestamps)


def map_records(function: Callable[[Any], Any], values: Iterable[Any]) -> Values:
    """Return the result of a function object's method for each record, protected against later changes."""
    results: Values = []
    for value in values:
        result = function(value)
        results.append(result if type(result) in IMMUTABLE else protect(result))
    return results


def flat_map_records(
    collector: Collector,
    context: OperatorContext,
    function: Callable[[Any], Any],
    values: Values,
    timestamps: Timestamps,
    method: str,
) -> None:
    """Call the method of a function object for each record of a batch and emit the results."""
    stamp = None
    try:
        for position, value in enumerate(values):
            if timestamps is not None:
                stamp = timestamps[position]
            collect_results(collector, function(value), stamp)
    except Exception as error:
        raise user_error(context, error, method) from None
    collector.flush()


def flat_map_plain(
    collector: Collector,
    context: OperatorContext,
    function: Callable[[Any], Any],
    values: Values,
    timestamps: Timestamps,
) -> None:
    """Call a plain function for each record of a batch and emit the results."""
    out = collector.values
    extend = out.extend
    try:
        if timestamps is None:
            for value in values:
                results = function(value)
                if results is not None:
                    extend(results)
        else:
            stamps: list[Any] = []
            for value, stamp in zip(values, timestamps, strict=True):
                results = function(value)
                if results is not None:
                    extend(results)
                    stamps.extend([stamp] * (len(out) - len(stamps)))
            collector.timestamps = stamps
    except Exception as error:
        raise user_error(context, error, "flat_map") from None
    route_tagged(collector)
    collector.flush()


def route_tagged(collector: Collector) -> None:
    """Move PyFlink's `(tag, value)` pairs from the main output to the side outputs, once per batch."""
    for item in collector.values:
        if type(item) is tuple and len(item) == 2 and type(item[0]) is OutputTag:
            break
    else:
        return
    items, stamps = collector.values, collector.timestamps
    collector.values, collector.timestamps = [], None
    for position, item in enumerate(items):
        collector.collect(item, None if stamps is None else stamps[position])
