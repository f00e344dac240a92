"""Two streams in one operator (rule 5.4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from penstock.common.errors import InvalidProgramError, shorten
from penstock.common.typeinfo import TypeInformation
from penstock.core.functions import (
    CoFlatMapFunction,
    CoMapFunction,
    CoProcessFunction,
    KeyedCoProcessFunction,
    KeySelector,
)
from penstock.datastream.data_stream import DataStream
from penstock.datastream.function_checks import class_hint
from penstock.datastream.keyed_stream import KeyedStream
from penstock.graph.transformation import TwoInputTransformation
from penstock.runtime.operators.co_map import (
    CoFlatMapOperator,
    CoMapOperator,
    KeyedCoFlatMapOperator,
    KeyedCoMapOperator,
)
from penstock.runtime.operators.co_process import CoProcessOperator
from penstock.runtime.operators.keyed_co_process import KeyedCoProcessOperator
from penstock.runtime.operators.operator import StreamOperator
from penstock.runtime.operators.type_check import declare_output_type
from penstock.runtime.records.batch import KeySelect

__all__ = ["ConnectedStreams"]

T = TypeVar("T")
U = TypeVar("U")
R = TypeVar("R")


class ConnectedStreams(Generic[T, U]):
    """Two streams, possibly of different types. If both are keyed, records with the same key meet in the same subtask.

    If only one stream is keyed, its records are processed under their keys and those of the other stream without a key.
    Keyed state is then available on the keyed side only. The other stream is typically ``other.broadcast()``, which
    sends each record to every subtask.

    The order in which the two functions are called is not defined: records are handled as they arrive.
    """

    def __init__(self, stream1: DataStream[T], stream2: DataStream[U]) -> None:
        self.stream1 = stream1
        self.stream2 = stream2

    def get_execution_environment(self) -> Any:
        return self.stream1.get_execution_environment()

    def get_first_input(self) -> DataStream[T]:
        return self.stream1

    def get_second_input(self) -> DataStream[U]:
        return self.stream2

    def key_by(
        self,
        key_selector1: Callable[[T], Any] | KeySelector[T, Any] | int | str | list[Any],
        key_selector2: Callable[[U], Any] | KeySelector[U, Any] | int | str | list[Any],
        key_type: TypeInformation | None = None,
    ) -> ConnectedStreams[T, U]:
        """Key both streams. The keys must have the same meaning."""
        return ConnectedStreams(
            self.stream1.key_by(key_selector1, key_type=key_type), self.stream2.key_by(key_selector2, key_type=key_type)
        )

    def map(self, func: CoMapFunction[T, U, R], output_type: TypeInformation[Any] | None = None) -> DataStream[R]:
        """Emit one record for each record of either stream; none where the function returns None, as in PyFlink."""
        _check(func, CoMapFunction, "map")
        keys = self._keys()
        operator = CoMapOperator(func) if keys is None else KeyedCoMapOperator(func, *keys)
        return self.transform("Co-Map", operator, output_type)

    def flat_map(
        self, func: CoFlatMapFunction[T, U, R], output_type: TypeInformation[Any] | None = None
    ) -> DataStream[R]:
        """Emit any number of records for each record of either stream."""
        _check(func, CoFlatMapFunction, "flat_map")
        keys = self._keys()
        operator = CoFlatMapOperator(func) if keys is None else KeyedCoFlatMapOperator(func, *keys)
        return self.transform("Co-Flat Map", operator, output_type)

    def process(
        self,
        func: CoProcessFunction[T, U, R] | KeyedCoProcessFunction[Any, T, U, R],
        output_type: TypeInformation[Any] | None = None,
    ) -> DataStream[R]:
        """Apply a function with clocks and side outputs, and with state and timers if both streams are keyed."""
        keys = self._keys()
        if isinstance(func, KeyedCoProcessFunction):
            if keys is None or None in keys:
                raise InvalidProgramError("a KeyedCoProcessFunction needs keys on both streams: call key_by() first")
            operator = KeyedCoProcessOperator(func, keys[0], keys[1])  # type: ignore[arg-type]
            return self.transform("Co-Keyed-Process", operator, output_type)
        _check(func, CoProcessFunction, "process")
        return self.transform("Co-Process", CoProcessOperator(func), output_type)

    def _keys(self) -> tuple[KeySelect | None, KeySelect | None] | None:
        """The key of each stream, or None if neither has one."""
        keys = _key_of(self.stream1), _key_of(self.stream2)
        return None if keys == (None, None) else keys

    def transform(
        self, name: str, operator: StreamOperator, output_type: TypeInformation[Any] | None
    ) -> DataStream[Any]:
        return connect_inputs(self.stream1, self.stream2, name, operator, output_type)


def connect_inputs(
    stream1: DataStream,
    stream2: DataStream,
    name: str,
    operator: StreamOperator,
    output_type: TypeInformation[Any] | None = None,
) -> DataStream[Any]:
    """Return the output stream of an operator with two inputs."""
    env = stream1.get_execution_environment()
    env.check_open()
    declare_output_type(operator, output_type)
    transformation = TwoInputTransformation(
        name=name,
        input1=stream1.get_transformation(),
        input2=stream2.get_transformation(),
        operator=operator,
        output_type=output_type,
    )
    return DataStream(env, transformation)


def _key_of(stream: DataStream) -> KeySelect | None:
    return stream.get_key_selector() if isinstance(stream, KeyedStream) else None


def _check(func: Any, kind: type, method: str) -> None:
    if not isinstance(func, kind):
        raise InvalidProgramError(
            f"{method}() on connected streams takes a {kind.__name__}, got {shorten(func)}{class_hint(func)}"
        )
