"""Streams partitioned by key: keyed state, timers, rolling aggregates, windows (rule 5.3).

This module imports the operators of all its methods.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar, overload

from penstock.common.checks import require_name
from penstock.common.errors import InvalidProgramError, shorten
from penstock.common.typeinfo import TypeInformation
from penstock.core.declared_state import Ttl
from penstock.core.functions import (
    AggregateFunction,
    FilterFunction,
    FlatMapFunction,
    Function,
    KeyedProcessFunction,
    MapFunction,
    ProcessFunction,
    ReduceFunction,
)
from penstock.datastream.data_stream import DataStream
from penstock.datastream.function_checks import checked_function
from penstock.datastream.named_aggregates import AggregatesByKey, RollingAggregate
from penstock.datastream.stateful_function import Timers, stateful_function
from penstock.graph.transformation import PartitionTransformation, Transformation
from penstock.runtime.exchange.partitioner import KeyGroupPartitioner
from penstock.runtime.operators.keyed_process import KeyedProcessOperator
from penstock.runtime.operators.keyed_stateless import KeyedFilterOperator, KeyedFlatMapOperator, KeyedMapOperator
from penstock.runtime.operators.process import ProcessOperator
from penstock.runtime.operators.reduce import ReduceOperator
from penstock.runtime.operators.rolling import (
    RollingAggregation,
    RollingMax,
    RollingMaxBy,
    RollingMin,
    RollingMinBy,
    RollingSum,
)
from penstock.runtime.operators.type_check import declare_kept_type, declare_output_type
from penstock.runtime.records.batch import KeySelect
from penstock.runtime.state.state_types import describe

if TYPE_CHECKING:
    from penstock.core.window import GlobalWindow, Window, WindowAssigner
    from penstock.datastream.joined_streams import IntervalJoin
    from penstock.datastream.sink import DataStreamSink
    from penstock.datastream.stream_execution_environment import StreamExecutionEnvironment
    from penstock.datastream.windowed_stream import WindowedStream

__all__ = ["KeyedStream"]

T = TypeVar("T")
U = TypeVar("U")
R = TypeVar("R")
S = TypeVar("S")
K = TypeVar("K")
W = TypeVar("W", bound="Window")


class KeyedStream(AggregatesByKey[K, T], DataStream[T], Generic[K, T]):
    """A stream partitioned by key: all records with the same key go to the same subtask."""

    class AccumulateType(Enum):
        """The rolling aggregates."""

        MIN = 1
        MAX = 2
        MIN_BY = 3
        MAX_BY = 4
        SUM = 5

    def __init__(
        self,
        env: StreamExecutionEnvironment,
        origin: Transformation,
        key_selector: KeySelect,
        key_type: TypeInformation | None = None,
    ) -> None:
        env.check_open()
        partition = PartitionTransformation(
            name="Partition",
            input=origin,
            partitioner=KeyGroupPartitioner(key_selector, describe(key_type)),
            output_type=origin.output_type,
        )
        super().__init__(env, partition)
        self._key_selector = key_selector
        self._key_type = key_type

    def get_key_selector(self) -> KeySelect:
        """Return the key as a plain function of the record."""
        return self._key_selector

    def get_key_type(self) -> TypeInformation | None:
        """Return the declared type of the keys."""
        return self._key_type

    # One record at a time. Function objects may use keyed state (a plain function has no way to get it)

    def map(
        self, func: Callable[[T], R] | MapFunction[T, R], output_type: TypeInformation[Any] | None = None
    ) -> DataStream[R]:
        """Apply a function to each record; emit its result. A MapFunction may use keyed state."""
        if not isinstance(func, Function):
            return super().map(func, output_type)
        operator = KeyedMapOperator(checked_function(func, MapFunction, "map"), self._key_selector)
        return self.apply_operator("Map", operator, output_type)

    def flat_map(
        self,
        func: Callable[[T], Iterable[R] | None] | FlatMapFunction[T, R],
        output_type: TypeInformation[Any] | None = None,
    ) -> DataStream[R]:
        """Apply a function that returns an iterable, or yields. A FlatMapFunction may use keyed state."""
        if not isinstance(func, Function):
            return super().flat_map(func, output_type)
        operator = KeyedFlatMapOperator(checked_function(func, FlatMapFunction, "flat_map"), self._key_selector)
        return self.apply_operator("Flat Map", operator, output_type)

    def filter(self, func: Callable[[T], Any] | FilterFunction[T]) -> DataStream[T]:
        """Keep the records for which the function is true; a FilterFunction may use keyed state."""
        if not isinstance(func, Function):
            return super().filter(func)
        operator = KeyedFilterOperator(checked_function(func, FilterFunction, "filter"), self._key_selector)
        return self._keeping_type("Filter", operator)

    @overload
    def process(
        self,
        func: ProcessFunction[T, R] | KeyedProcessFunction[Any, T, R],
        output_type: TypeInformation[Any] | None = None,
    ) -> DataStream[R]: ...
    @overload
    def process(
        self,
        func: Callable[[T, S], Iterable[R] | None],
        output_type: TypeInformation[Any] | None = None,
        *,
        state: Callable[[], S] | None = None,
        on_timer: Callable[[S, Timers], Iterable[R] | None] | None = None,
        ttl: Ttl = None,
    ) -> DataStream[R]: ...
    @overload
    def process(
        self,
        func: Callable[[T, S, Timers], Iterable[R] | None],
        output_type: TypeInformation[Any] | None = None,
        *,
        state: Callable[[], S] | None = None,
        on_timer: Callable[[S, Timers], Iterable[R] | None] | None = None,
        ttl: Ttl = None,
    ) -> DataStream[R]: ...
    def process(
        self,
        func: Any,
        output_type: TypeInformation[Any] | None = None,
        *,
        state: Callable[[], Any] | None = None,
        on_timer: Callable[[Any, Timers], Any] | None = None,
        ttl: Ttl = None,
    ) -> DataStream[Any]:
        """Apply a function with keyed state, timers, clocks and side outputs.

        A plain function takes the record and the state of its key, and changes the state in place. It may take
        :class:`Timers` as the third parameter. The class of the state is ``state`` or the annotation of the second
        parameter. ``on_timer(state, timers)`` is called when a timer fires. State that is not written for ``ttl``
        expires.
        """
        if isinstance(func, ProcessFunction):
            return self.apply_operator("Process", ProcessOperator(func), output_type)
        if not isinstance(func, KeyedProcessFunction):
            if isinstance(func, Function):
                raise InvalidProgramError(
                    f"process() on a keyed stream takes a KeyedProcessFunction or a plain function, got {shorten(func)}"
                )
            func = stateful_function(func, state=state, on_timer=on_timer, ttl=ttl)
        elif state is not None or on_timer is not None or ttl is not None:
            raise InvalidProgramError(
                "state, on_timer and ttl are for plain functions: a KeyedProcessFunction has its own"
            )
        operator = KeyedProcessOperator(func, self._key_selector)
        declare_output_type(operator, output_type)
        return self.transform("KeyedProcess", operator, output_type)

    # Rolling aggregates: one update for each record; their state never expires

    def reduce(self, func: Callable[[T, T], T] | ReduceFunction[T]) -> DataStream[T]:
        """Emit ``reduce(current, new)`` for each record. The first record of a key is emitted unchanged."""
        return self._reduce("Keyed Reduce", checked_function(func, ReduceFunction, "reduce"))

    def sum(self, position_to_sum: int | str = 0) -> DataStream[T]:
        """Emit the sum of a field so far, in the first record of the key."""
        return self._aggregate(RollingSum(position_to_sum))

    def min(self, position_to_min: int | str = 0) -> DataStream[T]:
        """Emit the smallest value of a field so far, in the first record of the key."""
        return self._aggregate(RollingMin(position_to_min))

    def max(self, position_to_max: int | str = 0) -> DataStream[T]:
        """Emit the largest value of a field so far, in the first record of the key."""
        return self._aggregate(RollingMax(position_to_max))

    def min_by(self, position_to_min_by: int | str = 0, first: bool = True) -> DataStream[T]:
        """Emit the record with the smallest field so far; of equal records the first one, or the last one."""
        return self._aggregate(RollingMinBy(position_to_min_by, first=first))

    def max_by(self, position_to_max_by: int | str = 0, first: bool = True) -> DataStream[T]:
        """Emit the record with the largest field so far; of equal records the first one, or the last one."""
        return self._aggregate(RollingMaxBy(position_to_max_by, first=first))

    def _aggregated(self, function: AggregateFunction[Any, Any, Any], names: tuple[str, ...] | None) -> DataStream[Any]:
        return self.process(RollingAggregate(function, names))

    def _aggregate(self, aggregation: RollingAggregation) -> DataStream[T]:
        return self._reduce(f"Keyed {aggregation.name}", aggregation)

    def _reduce(self, name: str, function: Any) -> DataStream[T]:
        operator = ReduceOperator(function, self._key_selector)
        declare_kept_type(operator, self._transformation.output_type)
        return self._keeping_type(name, operator)

    def as_queryable_state(self, queryable_state_name: str) -> DataStreamSink:
        """Keep the latest record of each key so that other processes can query it; see ``QueryableStateClient``."""
        from penstock.connectors.sinks import DiscardingSink
        from penstock.datastream.queryable_state import LatestValue

        kept = self.process(LatestValue(require_name(queryable_state_name, "the name of a queryable state")))
        return kept.name(f"Queryable state: {queryable_state_name}").sink_to(DiscardingSink())

    # Windows and joins

    def window(self, window_assigner: WindowAssigner[Any, W]) -> WindowedStream[K, T, W]:
        """Group the records of each key into windows."""
        from penstock.datastream.windowed_stream import WindowedStream

        return WindowedStream(self, window_assigner)

    def count_window(self, size: int, slide: int = 0) -> WindowedStream[K, T, GlobalWindow]:
        """Group the records of each key into windows of ``size`` records."""
        from penstock.datastream.windowed_stream import count_window

        return count_window(self, size, slide)

    def interval_join(self, other: KeyedStream[K, U]) -> IntervalJoin[T, U]:
        """Join records with the same key whose timestamps are close: ``.between(..).process(..)``."""
        from penstock.datastream.joined_streams import IntervalJoin

        self._check_same_environment(other)
        if not isinstance(other, KeyedStream):
            raise InvalidProgramError("interval_join() needs a keyed stream on both sides: call key_by() on the other")
        return IntervalJoin(self, other)

    # Methods that make no sense between key_by() and the next operator

    def _refuse(self, method: str) -> NoReturn:
        raise InvalidProgramError(
            f"{method}() on a keyed stream would break its partitioning by key: use it before key_by(), "
            "or on the result of the next operator"
        )

    def shuffle(self) -> NoReturn:
        self._refuse("shuffle")

    def rebalance(self) -> NoReturn:
        self._refuse("rebalance")

    def rescale(self) -> NoReturn:
        self._refuse("rescale")

    def forward(self) -> NoReturn:
        self._refuse("forward")

    def global_(self) -> NoReturn:
        self._refuse("global")

    def broadcast(self, *args: Any) -> NoReturn:
        self._refuse("broadcast")

    def partition_custom(self, partitioner: Any, key_selector: Any) -> NoReturn:
        self._refuse("partition_custom")

    def get_name(self) -> NoReturn:
        raise InvalidProgramError("a keyed stream has no name: names belong to operators")


setattr(KeyedStream, "global", KeyedStream.global_)
