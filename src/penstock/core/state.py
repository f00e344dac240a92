"""State: the interfaces for user functions, and the descriptors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, overload

from penstock.common.checks import require_name
from penstock.common.errors import InvalidProgramError, StateAccessError, shorten
from penstock.common.typeinfo import ListTypeInfo, MapTypeInfo, TypeInformation
from penstock.common.typeinfo.base import checked_type
from penstock.core.functions.base import AggregateFunction, ReduceFunction
from penstock.core.functions.wrappers import ReduceFunctionWrapper
from penstock.core.state_ttl import Length, StateTtlConfig

__all__ = [
    "AggregatingState",
    "AggregatingStateDescriptor",
    "AppendingState",
    "BroadcastState",
    "ListState",
    "ListStateDescriptor",
    "MapState",
    "MapStateDescriptor",
    "MergingState",
    "OperatorStateStore",
    "ReadOnlyBroadcastState",
    "ReducingState",
    "ReducingStateDescriptor",
    "State",
    "StateDescriptor",
    "StateTtlConfig",
    "ValueState",
    "ValueStateDescriptor",
    "ValueStateWithDefault",
]

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")
IN = TypeVar("IN")
OUT = TypeVar("OUT")


def _unbound(state: object) -> StateAccessError:
    return StateAccessError(
        f"{state!r} is a state declaration: declare state in the body of a function's class (not in __init__()), and "
        "use it while the function runs, for the current key"
    )


class State(ABC):
    """State of the current key (or of the operator, for operator state).

    In the body of a function's class, call a state class to declare state: ``n = ValueState(int, default=0)``.
    """

    __slots__ = ()

    if not TYPE_CHECKING:

        def __new__(cls, *args: Any, **kwargs: Any) -> Any:
            """Return a declaration if the class itself is called."""
            from penstock.core.declared_state import DECLARATIONS

            return object.__new__(DECLARATIONS.get(cls, cls))

    def clear(self) -> None:
        """Clear the value of the current key."""
        raise _unbound(self)


class ValueState(State, Generic[T]):
    """One value per key.

    >>> from penstock.core.functions import KeyedProcessFunction
    >>> class Count(KeyedProcessFunction):
    ...     n = ValueState(int, default=0)
    ...
    ...     def process_element(self, value, ctx):
    ...         self.n.update(self.n.value() + 1)
    ...         yield ctx.get_current_key(), self.n.value()
    """

    __slots__ = ()

    if TYPE_CHECKING:

        @overload
        def __new__(
            cls,
            value_type: type[V] | TypeInformation[V],
            *,
            default: V,
            ttl: StateTtlConfig | Length | None = None,
            name: str | None = None,
        ) -> ValueStateWithDefault[V]: ...
        @overload
        def __new__(
            cls,
            value_type: type[T] | TypeInformation[T] | None = None,
            *,
            default: None = None,
            ttl: StateTtlConfig | Length | None = None,
            name: str | None = None,
        ) -> ValueState[T]: ...
        def __new__(cls, *args: Any, **kwargs: Any) -> Any: ...

    def value(self) -> T | None:
        """Return the value, or the descriptor's default (``None`` if it has none)."""
        raise _unbound(self)

    def update(self, value: T) -> None:
        """Set the value; ``None`` clears it."""
        raise _unbound(self)


class ValueStateWithDefault(ValueState[T]):
    """For type checkers: a value state with a default always has a value."""

    __slots__ = ()

    if TYPE_CHECKING:

        def value(self) -> T: ...


class AppendingState(State, Generic[IN, OUT]):
    """State to which you add elements and that returns a result."""

    __slots__ = ()

    def get(self) -> OUT:
        """Return the aggregate of the elements so far."""
        raise _unbound(self)

    def add(self, value: IN) -> None:
        """Add an element."""
        raise _unbound(self)


class MergingState(AppendingState[IN, OUT]):
    """Appending state that can be merged, as merging windows require."""

    __slots__ = ()


class ReducingState(MergingState[T, T | None]):
    """One value per key, combined with each added element; ``None`` while empty."""

    __slots__ = ()

    if TYPE_CHECKING:

        def __new__(
            cls,
            value_type: type[T] | TypeInformation[T] | None = None,
            reduce: ReduceFunction[T] | Callable[[T, T], T] | None = None,
            *,
            ttl: StateTtlConfig | Length | None = None,
            name: str | None = None,
        ) -> Self: ...


class AggregatingState(MergingState[IN, OUT]):
    """One accumulator per key, to which each element is added; ``None`` while empty."""

    __slots__ = ()

    if TYPE_CHECKING:

        def __new__(
            cls,
            aggregate: AggregateFunction[IN, Any, OUT],
            *,
            ttl: StateTtlConfig | Length | None = None,
            name: str | None = None,
        ) -> Self: ...


class ListState(MergingState[T, Iterable[T]]):
    """A list of elements per key. Without elements it is empty, never ``None``."""

    __slots__ = ()

    if TYPE_CHECKING:

        def __new__(
            cls,
            element_type: type[T] | TypeInformation[T] | None = None,
            *,
            ttl: StateTtlConfig | Length | None = None,
            name: str | None = None,
        ) -> Self: ...

    def update(self, values: list[T]) -> None:
        """Replace all elements."""
        raise _unbound(self)

    def add_all(self, values: list[T]) -> None:
        """Add several elements."""
        raise _unbound(self)

    def __iter__(self) -> Iterator[T]:
        return iter(self.get())


class _ReadableMap(State, Generic[K, V]):
    """The methods that read map state."""

    __slots__ = ()

    def get(self, key: K) -> V | None:
        """Return the value of ``key``, or ``None``."""
        raise _unbound(self)

    def contains(self, key: K) -> bool:
        """Whether ``key`` has an entry."""
        raise _unbound(self)

    def items(self) -> Iterable[tuple[K, V]]:
        """Return all entries."""
        raise _unbound(self)

    def keys(self) -> Iterable[K]:
        """Return the keys of all entries."""
        raise _unbound(self)

    def values(self) -> Iterable[V]:
        """Return the values of all entries."""
        raise _unbound(self)

    def is_empty(self) -> bool:
        """Whether there are no entries."""
        raise _unbound(self)

    def __getitem__(self, key: K) -> V | None:
        return self.get(key)

    def __contains__(self, key: K) -> bool:
        return self.contains(key)

    def __iter__(self) -> Iterator[K]:
        return iter(self.keys())


class _WritableMap(_ReadableMap[K, V]):
    """The methods that write map state."""

    __slots__ = ()

    def put(self, key: K, value: V) -> None:
        """Set an entry."""
        raise _unbound(self)

    def put_all(self, dict_value: Mapping[K, V]) -> None:
        """Set several entries."""
        raise _unbound(self)

    def remove(self, key: K) -> None:
        """Remove an entry, if it exists."""
        raise _unbound(self)

    def __setitem__(self, key: K, value: V) -> None:
        self.put(key, value)

    def __delitem__(self, key: K) -> None:
        self.remove(key)


class MapState(_WritableMap[K, V]):
    """A map per key. Entries are read and written individually."""

    __slots__ = ()

    if TYPE_CHECKING:

        def __new__(
            cls,
            key_type: type[K] | TypeInformation[K] | None = None,
            value_type: type[V] | TypeInformation[V] | None = None,
            *,
            ttl: StateTtlConfig | Length | None = None,
            name: str | None = None,
        ) -> Self: ...


class ReadOnlyBroadcastState(_ReadableMap[K, V]):
    """Broadcast state for the non-broadcast side."""

    __slots__ = ()


class BroadcastState(_WritableMap[K, V], ReadOnlyBroadcastState[K, V]):
    """A map that is the same in every parallel task, since each one gets the same broadcast elements."""

    __slots__ = ()


class OperatorStateStore(ABC):
    """Creates state that belongs to a parallel task, not to a key."""

    @abstractmethod
    def get_broadcast_state(self, state_descriptor: MapStateDescriptor[K, V]) -> BroadcastState[K, V]:
        """Return a map that every parallel task holds in full."""

    @abstractmethod
    def get_list_state(self, state_descriptor: ListStateDescriptor[T]) -> ListState[T]:
        """Return a list whose elements are redistributed evenly when the parallelism changes."""

    @abstractmethod
    def get_union_list_state(self, state_descriptor: ListStateDescriptor[T]) -> ListState[T]:
        """Return a list. When the job is restored, each task gets the elements of all tasks."""


class StateDescriptor:
    """Describes a state of an operator: its name and type. Equal names refer to the same state."""

    def __init__(self, name: str, type_info: TypeInformation | None = None) -> None:
        if type_info is not None:
            checked_type(type_info, f"the type of state {name!r}")
        self.name = require_name(name, "the name of a state")
        self.type_info = type_info
        self._ttl_config: StateTtlConfig | None = None
        self._queryable_name: str | None = None

    @property
    def ttl_config(self) -> StateTtlConfig | None:
        """The time to live, if enabled."""
        return self._ttl_config

    def get_name(self) -> str:
        return self.name

    def set_queryable(self, queryable_state_name: str) -> None:
        """Let other processes query the state under this name while the job runs."""
        self._queryable_name = require_name(queryable_state_name, "the queryable name of a state")

    def is_queryable(self) -> bool:
        return self._queryable_name is not None

    def get_queryable_state_name(self) -> str | None:
        return self._queryable_name

    def enable_time_to_live(self, ttl_config: StateTtlConfig) -> None:
        """Let values expire; see :class:`StateTtlConfig`."""
        if not isinstance(ttl_config, StateTtlConfig):
            raise InvalidProgramError(
                f"the time to live of state {self.name!r} must be the result of "
                f"StateTtlConfig.new_builder(...).build(), got {shorten(ttl_config)}"
            )
        self._ttl_config = ttl_config if ttl_config.is_enabled() else None

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.name == getattr(other, "name", None)

    def __hash__(self) -> int:
        return hash((type(self).__name__, self.name))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"


class ValueStateDescriptor(StateDescriptor, Generic[T]):
    """Describes a :class:`ValueState`.

    >>> ValueStateDescriptor("count", default_value=0)
    ValueStateDescriptor('count')
    """

    @overload
    def __init__(self, name: str, value_type_info: TypeInformation[T], default_value: T | None = None) -> None: ...
    @overload
    def __init__(
        self: ValueStateDescriptor[Any], name: str, value_type_info: None = None, default_value: Any = None
    ) -> None: ...
    def __init__(
        self, name: str, value_type_info: TypeInformation[Any] | None = None, default_value: Any = None
    ) -> None:
        super().__init__(name, value_type_info)
        self.default_value = default_value


class ListStateDescriptor(StateDescriptor, Generic[T]):
    """Describes a :class:`ListState`."""

    @overload
    def __init__(self, name: str, elem_type_info: TypeInformation[T]) -> None: ...
    @overload
    def __init__(self: ListStateDescriptor[Any], name: str, elem_type_info: None = None) -> None: ...
    def __init__(self, name: str, elem_type_info: TypeInformation[Any] | None = None) -> None:
        super().__init__(name, None if elem_type_info is None else ListTypeInfo(elem_type_info))
        self.elem_type_info = elem_type_info


class MapStateDescriptor(StateDescriptor, Generic[K, V]):
    """Describes a :class:`MapState` or a broadcast state."""

    @overload
    def __init__(self, name: str, key_type_info: TypeInformation[K], value_type_info: TypeInformation[V]) -> None: ...
    @overload
    def __init__(
        self: MapStateDescriptor[Any, Any],
        name: str,
        key_type_info: TypeInformation[Any] | None = None,
        value_type_info: TypeInformation[Any] | None = None,
    ) -> None: ...
    def __init__(
        self,
        name: str,
        key_type_info: TypeInformation[Any] | None = None,
        value_type_info: TypeInformation[Any] | None = None,
    ) -> None:
        both = key_type_info is not None and value_type_info is not None
        super().__init__(name, MapTypeInfo(key_type_info, value_type_info) if both else None)  # type: ignore[arg-type]
        self.key_type_info = key_type_info
        self.value_type_info = value_type_info


class ReducingStateDescriptor(StateDescriptor, Generic[T]):
    """Describes a :class:`ReducingState`; takes a :class:`ReduceFunction` or a plain function of two values.

    >>> ReducingStateDescriptor("sum", lambda a, b: a + b).get_reduce_function().reduce(1, 2)
    3
    """

    def __init__(
        self,
        name: str,
        reduce_function: ReduceFunction[T] | Callable[[T, T], T],
        type_info: TypeInformation[T] | None = None,
    ) -> None:
        super().__init__(name, type_info)
        if not isinstance(reduce_function, ReduceFunction):
            if not callable(reduce_function):
                raise InvalidProgramError(f"state {name!r} needs a ReduceFunction or a function of two values")
            reduce_function = ReduceFunctionWrapper(reduce_function)
        self._reduce_function = reduce_function

    def get_reduce_function(self) -> ReduceFunction[T]:
        return self._reduce_function


class AggregatingStateDescriptor(StateDescriptor, Generic[IN, OUT]):
    """Describes an :class:`AggregatingState`. The type is that of the accumulator."""

    def __init__(
        self,
        name: str,
        agg_function: AggregateFunction[IN, Any, OUT],
        state_type_info: TypeInformation[Any] | None = None,
    ) -> None:
        super().__init__(name, state_type_info)
        if not isinstance(agg_function, AggregateFunction):
            raise InvalidProgramError(f"state {name!r} needs an AggregateFunction, got {agg_function!r}")
        self._agg_function = agg_function

    def get_agg_function(self) -> AggregateFunction[IN, Any, OUT]:
        return self._agg_function
