"""Functions of operators, and the context of the task in which they run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from penstock.common.errors import InvalidProgramError

if TYPE_CHECKING:
    from penstock.core.state import (
        AggregatingState,
        AggregatingStateDescriptor,
        ListState,
        ListStateDescriptor,
        MapState,
        MapStateDescriptor,
        ReducingState,
        ReducingStateDescriptor,
        ValueState,
        ValueStateDescriptor,
    )
    from penstock.metrics import MetricGroup

__all__ = [
    "AggregateFunction",
    "CoFlatMapFunction",
    "CoMapFunction",
    "DistributedCache",
    "FilterFunction",
    "FlatMapFunction",
    "Function",
    "KeySelector",
    "KeyedStateStore",
    "MapFunction",
    "NullByteKeySelector",
    "Partitioner",
    "ReduceFunction",
    "RuntimeContext",
    "StateDeclaration",
    "declared_states",
]

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")
IN = TypeVar("IN")
IN1 = TypeVar("IN1")
IN2 = TypeVar("IN2")
ACC = TypeVar("ACC")
OUT = TypeVar("OUT")


class KeyedStateStore(ABC):
    """Gives access to the state of the current key."""

    __slots__ = ()

    @abstractmethod
    def get_state(self, state_descriptor: ValueStateDescriptor[T]) -> ValueState[T]:
        """One value per key."""

    @abstractmethod
    def get_list_state(self, state_descriptor: ListStateDescriptor[T]) -> ListState[T]:
        """A list per key."""

    @abstractmethod
    def get_map_state(self, state_descriptor: MapStateDescriptor[K, V]) -> MapState[K, V]:
        """A map per key."""

    @abstractmethod
    def get_reducing_state(self, state_descriptor: ReducingStateDescriptor[T]) -> ReducingState[T]:
        """A reduced value per key."""

    @abstractmethod
    def get_aggregating_state(self, state_descriptor: AggregatingStateDescriptor[IN, OUT]) -> AggregatingState[IN, OUT]:
        """An aggregated value per key."""


class DistributedCache:
    """The files registered with ``env.register_cached_file``, as they lie on the worker.

    >>> DistributedCache({"cities": "/tmp/cities.csv"}).get_file("cities")
    '/tmp/cities.csv'
    """

    def __init__(self, files: dict[str, str] | None = None) -> None:
        self._files = dict(files or {})

    def get_file(self, name: str) -> str:
        """The local path of a registered file."""
        if name not in self._files:
            known = ", ".join(sorted(self._files)) or "none"
            raise InvalidProgramError(f"no file {name!r} was registered with register_cached_file (known: {known})")
        return self._files[name]


class RuntimeContext(KeyedStateStore):
    """The context of the parallel task in which a function runs."""

    @abstractmethod
    def get_task_name(self) -> str:
        """The operator's name."""

    @abstractmethod
    def get_number_of_parallel_subtasks(self) -> int:
        """The operator's parallelism."""

    @abstractmethod
    def get_max_number_of_parallel_subtasks(self) -> int:
        """The operator's max parallelism, which is its number of key groups."""

    @abstractmethod
    def get_index_of_this_subtask(self) -> int:
        """This task's number, from 0."""

    @abstractmethod
    def get_attempt_number(self) -> int:
        """Return the number of restarts of the task, from 0."""

    @abstractmethod
    def get_job_parameter(self, key: str, default_value: str) -> str:
        """A global job parameter, as set on the execution config."""

    @abstractmethod
    def get_metrics_group(self) -> MetricGroup:
        """Where the function's own metrics are registered."""

    def get_metric_group(self) -> MetricGroup:
        """Java's name of :meth:`get_metrics_group`."""
        return self.get_metrics_group()

    def get_task_name_with_subtasks(self) -> str:
        """The name with this task's number, from 1: ``map (1/4)``."""
        number = self.get_index_of_this_subtask() + 1
        return f"{self.get_task_name()} ({number}/{self.get_number_of_parallel_subtasks()})"

    def get_distributed_cache(self) -> DistributedCache:
        """The files registered with ``env.register_cached_file``."""
        return DistributedCache()


class StateDeclaration(ABC):
    """A state declared in the body of a function's class: ``n = ValueState(int, default=0)``."""

    __slots__ = ()

    @abstractmethod
    def bind(self, function: Function, runtime_context: RuntimeContext) -> None:
        """Registers the state and makes it the attribute of the function."""

    @abstractmethod
    def check(self, function: Function) -> None:
        """Reject a function that has assigned to the attribute, which would lose the state."""


class Function(ABC):
    """Base of all user functions.

    A function object is pickled and sent to every parallel task; each task calls :meth:`open` on its own copy before
    the first record and :meth:`close` after the last. Things that cannot be pickled belong in :meth:`open`.
    """

    # Set by the runtime before open(). On the class, so that subclasses need not call super().__init__().
    _runtime_context: RuntimeContext | None = None

    def open(self, runtime_context: RuntimeContext) -> None:
        """Called once per parallel task before the first record; state is registered here."""

    def close(self) -> None:
        """Called once per parallel task after the last record, also after a failure."""

    def get_runtime_context(self) -> RuntimeContext:
        """The context that :meth:`open` was called with."""
        if self._runtime_context is None:
            raise InvalidProgramError(
                f"{type(self).__name__} has no runtime context yet: get_runtime_context() works from open() on, "
                "not in __init__() and not on the driver"
            )
        return self._runtime_context

    def set_runtime_context(self, runtime_context: RuntimeContext | None) -> None:
        """Called by the runtime, before :meth:`open`; registers the states that the class declares."""
        self._runtime_context = runtime_context
        if runtime_context is not None:
            for declaration in declared_states(type(self)):
                declaration.bind(self, runtime_context)

    def check_declared_states(self) -> None:
        """Called by the runtime before a snapshot: every state that the class declares is still there."""
        for declaration in declared_states(type(self)):
            declaration.check(self)


def declared_states(function_class: type[Function]) -> list[StateDeclaration]:
    """The states that a class and its bases declare, those of the bases first."""
    attributes: dict[str, Any] = {}
    for cls in reversed(function_class.__mro__):
        attributes.update(vars(cls))
    return [value for value in attributes.values() if isinstance(value, StateDeclaration)]


class MapFunction(Function, Generic[IN, OUT]):
    """One output for each input.

    >>> class Double(MapFunction):
    ...     def map(self, value):
    ...         return value * 2
    """

    @abstractmethod
    def map(self, value: IN) -> OUT:
        """The output for ``value``."""


class FlatMapFunction(Function, Generic[IN, OUT]):
    """Any number of outputs for each input."""

    @abstractmethod
    def flat_map(self, value: IN) -> Iterable[OUT] | None:
        """Yields or returns the outputs for ``value``."""


class FilterFunction(Function, Generic[T]):
    """Keeps some of the records."""

    @abstractmethod
    def filter(self, value: T) -> bool:
        """Whether ``value`` is kept."""


class ReduceFunction(Function, Generic[T]):
    """Combines two values into one of the same type."""

    @abstractmethod
    def reduce(self, value1: T, value2: T) -> T:
        """Combines the reduced value so far (``value1``) with a new value."""


class AggregateFunction(Function, Generic[IN, ACC, OUT]):
    """Aggregates values with an accumulator of any type.

    >>> class Average(AggregateFunction):
    ...     def create_accumulator(self):
    ...         return (0, 0)
    ...
    ...     def add(self, value, accumulator):
    ...         return (accumulator[0] + value, accumulator[1] + 1)
    ...
    ...     def get_result(self, accumulator):
    ...         return accumulator[0] / accumulator[1]
    ...
    ...     def merge(self, acc_a, acc_b):
    ...         return (acc_a[0] + acc_b[0], acc_a[1] + acc_b[1])
    """

    @abstractmethod
    def create_accumulator(self) -> ACC:
        """A new, empty accumulator."""

    @abstractmethod
    def add(self, value: IN, accumulator: ACC) -> ACC:
        """The accumulator with ``value`` added; may be the same object."""

    @abstractmethod
    def get_result(self, accumulator: ACC) -> OUT:
        """The result of an accumulator."""

    @abstractmethod
    def merge(self, acc_a: ACC, acc_b: ACC) -> ACC:
        """One accumulator for both; merging windows need it."""


class CoMapFunction(Function, Generic[IN1, IN2, OUT]):
    """A map over two connected streams."""

    @abstractmethod
    def map1(self, value: IN1) -> OUT:
        """The output for a record of the first stream."""

    @abstractmethod
    def map2(self, value: IN2) -> OUT:
        """The output for a record of the second stream."""


class CoFlatMapFunction(Function, Generic[IN1, IN2, OUT]):
    """A flat map over two connected streams."""

    @abstractmethod
    def flat_map1(self, value: IN1) -> Iterable[OUT] | None:
        """The outputs for a record of the first stream."""

    @abstractmethod
    def flat_map2(self, value: IN2) -> Iterable[OUT] | None:
        """The outputs for a record of the second stream."""


class KeySelector(Function, Generic[IN, K]):
    """Computes the key of a record; must give the same key for the same record, always."""

    @abstractmethod
    def get_key(self, value: IN) -> K:
        """The key of ``value``."""


class NullByteKeySelector(KeySelector[Any, int]):
    """Gives every record the same key: everything in one task."""

    def get_key(self, value: Any) -> int:
        return 0


class Partitioner(Function, Generic[K]):
    """Decides which parallel task gets a record."""

    @abstractmethod
    def partition(self, key: K, num_partitions: int) -> int:
        """The task for ``key``, from 0 to ``num_partitions - 1``."""
