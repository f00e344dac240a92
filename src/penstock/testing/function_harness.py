"""Tests a single function: feeds it, and returns its results.

>>> from penstock.core.state import ValueState
>>> from penstock.datastream import KeyedProcessFunction
>>> class Count(KeyedProcessFunction):
...     n = ValueState(int, default=0)
...
...     def process_element(self, value, ctx):
...         self.n.update(self.n.value() + 1)
...         yield ctx.get_current_key(), self.n.value()
>>> FunctionHarness(Count(), key_by=0).receive(("ann", 5), ("bob", 1), ("ann", 2)).results()
[('ann', 1), ('bob', 1), ('ann', 2)]
"""

from __future__ import annotations

import inspect
import pickle
from typing import Any, Self

import cloudpickle

from penstock.common.errors import InvalidProgramError, shorten
from penstock.common.time import to_millis
from penstock.core.functions import FilterFunction, FlatMapFunction, MapFunction
from penstock.core.output_tag import OutputTag
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.event_time import Length
from penstock.runtime.operators.operator import StreamOperator
from penstock.testing.harness import OneInputOperatorHarness
from penstock.testing.mini_cluster import MiniCluster
from penstock.testing.times import Moment, millis_of

__all__ = ["FunctionHarness"]


class FunctionHarness:
    """Runs a function like its operator, with state, timers and both clocks.

    :param function: a MapFunction, FlatMapFunction, FilterFunction or process function, or a plain function with state
    :param key_by: the key of a record, as in ``key_by()``: a field or a function
    :param snapshot: the state of another harness
    :param options: further arguments of ``process()``, such as ``on_timer``
    """

    def __init__(self, function: Any, *, key_by: Any = None, snapshot: bytes | None = None, **options: Any) -> None:
        self._function = function
        self._key_by = key_by
        self._options = options
        operator = pickle.loads(cloudpickle.dumps(self._operator()))  # a copy, as in a task
        self._harness = OneInputOperatorHarness(operator, snapshot=snapshot)

    def _operator(self) -> StreamOperator:
        """Return the operator of a job with this function."""
        stream: Any = StreamExecutionEnvironment(executor=MiniCluster()).from_collection([])
        if self._key_by is not None:
            stream = stream.key_by(self._key_by)
        kinds = {MapFunction: "map", FlatMapFunction: "flat_map", FilterFunction: "filter"}
        method = next((name for kind, name in kinds.items() if isinstance(self._function, kind)), "process")
        if self._key_by is None and method == "process" and inspect.isroutine(self._function):
            raise InvalidProgramError(
                f"{shorten(self._function)} needs the key of its state: pass key_by=... to the harness. For map(), "
                "flat_map() and filter(), call the function itself"
            )
        made = getattr(stream, method)(self._function, **self._options)
        operator: StreamOperator = made.get_transformation().operator
        return operator

    def receive(self, *records: Any, at: Moment | None = None) -> Self:
        """Process records, with this timestamp or without one."""
        for record in records:
            self._harness.process_element(record, None if at is None else millis_of(at))
        return self

    def at(self, time: Moment) -> Self:
        """Advance event time."""
        self._harness.process_watermark(millis_of(time))
        return self

    def wait(self, length: Length) -> Self:
        """Advance processing time, which starts at 0."""
        self._harness.set_processing_time(self._harness.clock.now + to_millis(length))
        return self

    def results(self) -> list[Any]:
        """Return the records emitted since the last call."""
        return self._harness.extract_values()

    def side_output(self, tag: OutputTag[Any]) -> list[Any]:
        """Return the records emitted with a tag since the last call."""
        return [value for value, _ in self._harness.extract_side_output(tag)]

    @property
    def timers(self) -> int:
        """The number of registered timers."""
        return self._harness.num_event_time_timers() + self._harness.num_processing_time_timers()

    @property
    def keys_with_state(self) -> int:
        """The number of keys with state or timers."""
        return self._harness.num_keyed_state_entries()

    def restarted(self, function: Any = None) -> FunctionHarness:
        """Return a new harness that continues with this harness's state, optionally with a newer function."""
        snapshot = self._harness.snapshot()
        self.close()
        next_function = self._function if function is None else function
        return FunctionHarness(next_function, key_by=self._key_by, snapshot=snapshot, **self._options)

    def close(self) -> None:
        """Close the function."""
        self._harness.close()
