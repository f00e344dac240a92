"""The functions of operators, and the context of the task in which they run."""

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
    """Creates state of the current key."""

    __slots__ = ()

    @abstractmethod
    def get_state(self, state_descriptor: ValueStateDescriptor[T]) -> ValueState[T]:
        """Return a state with one value per key."""

    @abstractmethod
    def get_list_state(self, state_descriptor: ListStateDescriptor[T]) -> ListState[T]:
        """Return a state with a list per key."""

    @abstractmethod
    def get_map_state(self, state_descriptor: MapStateDescriptor[K, V]) -> MapState[K, V]:
        """Return a state with a map per key."""

    @abstractmethod
    def get_reducing_state(self, state_descriptor: ReducingStateDescriptor[T]) -> ReducingState[T]:
        """Return a state with a reduced value per key."""

    @abstractmethod
    def get_aggregating_state(self, state_descriptor: AggregatingStateDescriptor[IN, OUT]) -> AggregatingState[IN, OUT]:
        """Return a state with an aggregated value per key."""


class DistributedCache:
    """The files registered with ``env.register_cached_file``, as local files of the worker.

    >>> DistributedCache({"cities": "/tmp/cities.csv"}).get_file("cities")
    '/tmp/cities.csv'
    """

    def __init__(self, files: dict[str, str] | None = None) -> None:
        self._files = dict(files or {})

    def get_file(self, name: str) -> str:
        """Return the local path of a registered file."""
        if name not in self._files:
            known = ", ".join(sorted(self._files)) or "none"
            raise InvalidProgramError(f"no file {name!r} was registered with register_cached_file (known: {known})")
        return self._files[name]


class RuntimeContext(KeyedStateStore):
    """The context of the parallel task in which a function runs."""

    @abstractmethod
    def get_task_name(self) -> str:
        """Return the operator's name."""

    @abstractmethod
    def get_number_of_parallel_subtasks(self) -> int:
        """Return the operator's parallelism."""

    @abstractmethod
    def get_max_number_of_parallel_subtasks(self) -> int:
        """Return the operator's max parallelism, which is its number of key groups."""

    @abstractmethod
    def get_index_of_this_subtask(self) -> int:
        """Return the index of this subtask, from 0."""

    @abstractmethod
    def get_attempt_number(self) -> int:
        """Return the number of restarts of the task, from 0."""

    @abstractmethod
    def get_job_parameter(self, key: str, default_value: str) -> str:
        """Return a global job parameter of the execution config, or the default."""

    @abstractmethod
    def get_metrics_group(self) -> MetricGroup:
        """Return the group in which the function registers its own metrics."""

    def get_metric_group(self) -> MetricGroup:
        """Java's name of :meth:`get_metrics_group`."""
        return self.get_metrics_group()

    def get_task_name_with_subtasks(self) -> str:
        """Return the name with the number of this subtask, from 1: ``map (1/4)``."""
        number = self.get_index_of_this_subtask() + 1
        return f"{self.get_task_name()} ({number}/{self.get_number_of_parallel_subtasks()})"

    def get_distributed_cache(self) -> DistributedCache:
        """Return the files registered with ``env.register_cached_file``."""
        return DistributedCache()


class StateDeclaration(ABC):
    """A state declared in the body of a function's class: ``n = ValueState(int, default=0)``."""

    __slots__ = ()

    @abstractmethod
    def bind(self, function: Function, runtime_context: RuntimeContext) -> None:
        """Register the state and set it as the attribute of the function."""

    @abstractmethod
    def check(self, function: Function) -> None:
        """Reject a function that assigned something else to the attribute, which would lose the state."""


class Function(ABC):
    """Base class of all user functions.

    A function object is pickled and sent to each parallel task. Each task calls :meth:`open` on its copy before the
    first record and :meth:`close` after the last one. Create things that cannot be pickled in :meth:`open`.
    """

    # The runtime sets it before open(). A class attribute, so that subclasses need not call super().__init__().
    _runtime_context: RuntimeContext | None = None

    def open(self, runtime_context: RuntimeContext) -> None:
        """Called once per parallel task before the first record. Register state here."""

    def close(self) -> None:
        """Called once per parallel task after the last record, and after a failure."""

    def get_runtime_context(self) -> RuntimeContext:
        """Return the context that was passed to :meth:`open`."""
        if self._runtime_context is None:
            raise InvalidProgramError(
                f"{type(self).__name__} has no runtime context yet: call get_runtime_context() in open() or later, "
                "not in __init__() and not on the driver"
            )
        return self._runtime_context

    def set_runtime_context(self, runtime_context: RuntimeContext | None) -> None:
        """Set the context and register the declared states. The runtime calls this before :meth:`open`."""
        self._runtime_context = runtime_context
        if runtime_context is not None:
            for declaration in declared_states(type(self)):
                declaration.bind(self, runtime_context)

    def check_declared_states(self) -> None:
        """Check that each declared state is still an attribute. The runtime calls this before a snapshot."""
        for declaration in declared_states(type(self)):
            declaration.check(self)


def declared_states(function_class: type[Function]) -> list[StateDeclaration]:
    """Return the states that a class and its bases declare, those of the bases first."""
    attributes: dict[str, Any] = {}
    for cls in reversed(function_class.__mro__):
        attributes.update(vars(cls))
    return [value for value in attributes.values() if isinstance(value, StateDeclaration)]


class MapFunction(Function, Generic[IN, OUT]):
    """Returns one output for each input.

    >>> class Double(MapFunction):
    ...     def map(self, value):
    ...         return value * 2
    """

    @abstractmethod
    def map(self, value: IN) -> OUT:
        """Return the output for ``value``."""


class FlatMapFunction(Function, Generic[IN, OUT]):
    """Returns any number of outputs for each input."""

    @abstractmethod
    def flat_map(self, value: IN) -> Iterable[OUT] | None:
        """Yield or return the outputs for ``value``."""


class FilterFunction(Function, Generic[T]):
    """Keeps some of the records."""

    @abstractmethod
    def filter(self, value: T) -> bool:
        """Whether to keep ``value``."""


class ReduceFunction(Function, Generic[T]):
    """Combines two values into one of the same type."""

    @abstractmethod
    def reduce(self, value1: T, value2: T) -> T:
        """Combine the reduced value so far (``value1``) with a new value."""


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
        """Return a new, empty accumulator."""

    @abstractmethod
    def add(self, value: IN, accumulator: ACC) -> ACC:
        """Return the accumulator with ``value`` added; it may be the same object."""

    @abstractmethod
    def get_result(self, accumulator: ACC) -> OUT:
        """Return the result of an accumulator."""

    @abstractmethod
    def merge(self, acc_a: ACC, acc_b: ACC) -> ACC:
        """Merge two accumulators into one. Merging windows need this."""


class CoMapFunction(Function, Generic[IN1, IN2, OUT]):
    """A map function for two connected streams."""

    @abstractmethod
    def map1(self, value: IN1) -> OUT:
        """Return the output for a record of the first stream."""

    @abstractmethod
    def map2(self, value: IN2) -> OUT:
        """Return the output for a record of the second stream."""


class CoFlatMapFunction(Function, Generic[IN1, IN2, OUT]):
    """A flat-map function for two connected streams."""

    @abstractmethod
    def flat_map1(self, value: IN1) -> Iterable[OUT] | None:
        """Yield or return the outputs for a record of the first stream."""

    @abstractmethod
    def flat_map2(self, value: IN2) -> Iterable[OUT] | None:
        """Yield or return the outputs for a record of the second stream."""


class KeySelector(Function, Generic[IN, K]):
    """Computes the key of a record. It must always return the same key for the same record."""

    @abstractmethod
    def get_key(self, value: IN) -> K:
        """Return the key of ``value``."""


class NullByteKeySelector(KeySelector[Any, int]):
    """Returns the same key for all records, so that one task processes them all."""

    def get_key(self, value: Any) -> int:
        return 0


class Partitioner(Function, Generic[K]):
    """Decides which parallel task gets a record."""

    @abstractmethod
    def partition(self, key: K, num_partitions: int) -> int:
        """Return the task for ``key``, from 0 to ``num_partitions - 1``."""
