"""State declared where it is used: ``n = ValueState(int, default=0)`` in the body of a function's class.

A declaration creates the descriptor that ``open`` would create. The runtime binds it before ``open``: the state becomes
an attribute of the function object and hides the declaration, so access costs nothing extra. The name of the attribute
is the name of the state. A Python class given as the type is for readers and type checkers; only a ``TypeInformation``
is also stored.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from penstock.common.errors import InvalidProgramError, shorten
from penstock.common.typeinfo import TypeInformation
from penstock.core.functions.base import Function, RuntimeContext, StateDeclaration
from penstock.core.state import (
    AggregatingState,
    AggregatingStateDescriptor,
    ListState,
    ListStateDescriptor,
    MapState,
    MapStateDescriptor,
    ReducingState,
    ReducingStateDescriptor,
    State,
    StateDescriptor,
    ValueState,
    ValueStateDescriptor,
)
from penstock.core.state_ttl import Length, StateTtlConfig

__all__ = ["DECLARATIONS"]

Ttl = StateTtlConfig | Length | None


def _type_info(declared: Any) -> TypeInformation[Any] | None:
    """Return the type to store with the state. For a Python class, the type is inferred from the state's values."""
    return declared if isinstance(declared, TypeInformation) else None


class _Declaration(StateDeclaration):
    """The base class of the declarations of all kinds of state."""

    _name: str | None = None
    _attribute: str | None = None
    _owner = ""
    _ttl: Ttl = None

    def _describe(self, name: str | None, ttl: Ttl) -> None:
        self._name = name
        self._ttl = ttl

    @abstractmethod
    def _descriptor(self, name: str) -> StateDescriptor:
        """Return the descriptor of a state with that name."""

    @abstractmethod
    def _create(self, descriptor: Any, runtime_context: RuntimeContext) -> State:
        """Register the state."""

    def __set_name__(self, owner: type, attribute: str) -> None:
        if self._attribute not in (None, attribute):
            raise InvalidProgramError(
                f"the state '{self._attribute}' of {self._owner} is also '{attribute}' of {owner.__name__}: "
                "declare a separate state for each attribute"
            )
        self._attribute = attribute
        self._owner = owner.__name__

    def descriptor(self) -> StateDescriptor:
        """Return the descriptor of the declared state."""
        name = self._name or self._attribute
        if name is None:
            raise InvalidProgramError(
                f"a {self._kind()} is declared outside of a class: declare it in the body of a function's class"
            )
        descriptor = self._descriptor(name)
        if self._ttl is not None:
            ttl = self._ttl
            descriptor.enable_time_to_live(
                ttl if isinstance(ttl, StateTtlConfig) else StateTtlConfig.new_builder(ttl).build()
            )
        return descriptor

    def bind(self, function: Function, runtime_context: RuntimeContext) -> None:
        descriptor = self.descriptor()
        vars(function)[self._attribute or descriptor.name] = self._create(descriptor, runtime_context)

    def check(self, function: Function) -> None:
        value = vars(function).get(self._attribute or "")
        if value is not None and not isinstance(value, State):
            name = f"self.{self._attribute}"
            instead = f"{name}.update({shorten(value)})" if isinstance(self, ValueState) else f"the methods of {name}"
            raise InvalidProgramError(
                f"{type(function).__name__} assigns {shorten(value)} to {name}, which is a {self._kind()}: use "
                f"{instead} instead"
            )

    def _kind(self) -> str:
        return type(self).__name__.removeprefix("Declared")

    def __repr__(self) -> str:
        place = "" if self._attribute is None else f"{self._owner}.{self._attribute} = "
        return f"{place}{self._kind()}(...)"


class DeclaredValueState(_Declaration, ValueState[Any]):
    """A value state that is not bound yet."""

    def __init__(
        self, value_type: Any = None, *, default: Any = None, ttl: Ttl = None, name: str | None = None
    ) -> None:
        self._describe(name, ttl)
        self._type = _type_info(value_type)
        self._default = default
        if isinstance(value_type, type) and default is not None and not _fits(default, value_type):
            raise InvalidProgramError(
                f"the default of a ValueState of {value_type.__name__} is {shorten(default)}, which has another type"
            )

    def _descriptor(self, name: str) -> StateDescriptor:
        return ValueStateDescriptor(name, self._type, self._default)

    def _create(self, descriptor: Any, runtime_context: RuntimeContext) -> State:
        return runtime_context.get_state(descriptor)


def _fits(default: Any, value_type: type) -> bool:
    return isinstance(default, value_type) or (value_type is float and isinstance(default, int))


class DeclaredListState(_Declaration, ListState[Any]):
    """A list state that is not bound yet."""

    def __init__(self, element_type: Any = None, *, ttl: Ttl = None, name: str | None = None) -> None:
        self._describe(name, ttl)
        self._type = _type_info(element_type)

    def _descriptor(self, name: str) -> StateDescriptor:
        return ListStateDescriptor(name, self._type)

    def _create(self, descriptor: Any, runtime_context: RuntimeContext) -> State:
        return runtime_context.get_list_state(descriptor)


class DeclaredMapState(_Declaration, MapState[Any, Any]):
    """A map state that is not bound yet."""

    def __init__(
        self, key_type: Any = None, value_type: Any = None, *, ttl: Ttl = None, name: str | None = None
    ) -> None:
        self._describe(name, ttl)
        self._types = _type_info(key_type), _type_info(value_type)

    def _descriptor(self, name: str) -> StateDescriptor:
        return MapStateDescriptor(name, *self._types)

    def _create(self, descriptor: Any, runtime_context: RuntimeContext) -> State:
        return runtime_context.get_map_state(descriptor)


class DeclaredReducingState(_Declaration, ReducingState[Any]):
    """A reducing state that is not bound yet."""

    def __init__(self, value_type: Any = None, reduce: Any = None, *, ttl: Ttl = None, name: str | None = None) -> None:
        self._describe(name, ttl)
        self._type = _type_info(value_type)
        self._reduce = reduce
        if not callable(getattr(reduce, "reduce", reduce)):
            raise InvalidProgramError(
                "a ReducingState needs a function of two values: ReducingState(int, lambda a, b: a + b)"
            )

    def _descriptor(self, name: str) -> StateDescriptor:
        return ReducingStateDescriptor(name, self._reduce, self._type)

    def _create(self, descriptor: Any, runtime_context: RuntimeContext) -> State:
        return runtime_context.get_reducing_state(descriptor)


class DeclaredAggregatingState(_Declaration, AggregatingState[Any, Any]):
    """An aggregating state that is not bound yet."""

    def __init__(self, aggregate: Any, *, ttl: Ttl = None, name: str | None = None) -> None:
        self._describe(name, ttl)
        self._aggregate = aggregate

    def _descriptor(self, name: str) -> StateDescriptor:
        return AggregatingStateDescriptor(name, self._aggregate)

    def _create(self, descriptor: Any, runtime_context: RuntimeContext) -> State:
        return runtime_context.get_aggregating_state(descriptor)


DECLARATIONS: dict[type, type] = {
    ValueState: DeclaredValueState,
    ListState: DeclaredListState,
    MapState: DeclaredMapState,
    ReducingState: DeclaredReducingState,
    AggregatingState: DeclaredAggregatingState,
}
"""The declaration that a call of each state class creates."""
