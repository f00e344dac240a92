"""User-defined functions: what user code implements (T100 to T105)."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from penstock.core.table.types import DataType

__all__ = [
    "AggregateFunction",
    "AsyncScalarFunction",
    "FunctionContext",
    "ImperativeAggregateFunction",
    "ScalarFunction",
    "TableAggregateFunction",
    "TableFunction",
    "UserDefinedFunction",
]

ACC = TypeVar("ACC")
T = TypeVar("T")


class FunctionContext:
    """The context of ``open``: metrics, files, parameters of the job."""

    def __init__(self, runtime_context: Any = None, job_parameters: dict[str, str] | None = None) -> None:
        self._runtime_context = runtime_context
        self._parameters = job_parameters or {}

    def get_metric_group(self) -> Any:
        """Metrics of the operator."""
        return self._runtime_context.get_metrics_group()

    def get_job_parameter(self, key: str, default_value: str) -> str:
        """A global job parameter."""
        known = self._parameters
        if self._runtime_context is not None and not known:
            known = self._runtime_context.get_job_parameters()
        return known.get(key, default_value)

    def get_task_name(self) -> str:
        """The name of the task."""
        return str(self._runtime_context.get_task_name())

    def get_task_name_with_subtasks(self) -> str:
        """The name of the task with the number of the subtask."""
        return str(self._runtime_context.get_task_name_with_subtasks())

    def get_number_of_parallel_subtasks(self) -> int:
        """The parallelism of the task."""
        return int(self._runtime_context.get_number_of_parallel_subtasks())

    def get_max_number_of_parallel_subtasks(self) -> int:
        """The maximum parallelism of the task."""
        return int(self._runtime_context.get_max_number_of_parallel_subtasks())

    def get_index_of_this_subtask(self) -> int:
        """The number of the subtask, from 0."""
        return int(self._runtime_context.get_index_of_this_subtask())

    def get_attempt_number(self) -> int:
        """How often the task was started before."""
        return int(self._runtime_context.get_attempt_number())


class UserDefinedFunction(ABC):
    """Base of all user-defined functions."""

    def open(self, function_context: FunctionContext) -> None:
        """Called once before the first row."""
        return

    def close(self) -> None:
        """Called once at the end."""
        return

    def is_deterministic(self) -> bool:
        """Whether equal arguments always give equal results."""
        return True


class ScalarFunction(UserDefinedFunction):
    """One value for each row."""

    @abstractmethod
    def eval(self, *args: Any) -> Any:
        """The value."""


class AsyncScalarFunction(UserDefinedFunction):
    """One value for each row, computed by a coroutine."""

    @abstractmethod
    async def eval(self, *args: Any) -> Any:
        """The value."""


class TableFunction(UserDefinedFunction):
    """Any number of rows for each row."""

    @abstractmethod
    def eval(self, *args: Any) -> Any:
        """Yields rows."""


class ImperativeAggregateFunction(UserDefinedFunction, Generic[T, ACC]):
    """Base of aggregate functions."""

    @abstractmethod
    def create_accumulator(self) -> ACC:
        """An accumulator that has seen nothing."""

    @abstractmethod
    def accumulate(self, accumulator: ACC, *args: Any) -> None:
        """Add a row."""

    def retract(self, accumulator: ACC, *args: Any) -> None:
        """Take a row away: needed if the input is updated."""
        raise NotImplementedError(f"{type(self).__name__} has no retract(): its input is updated, so it needs one")

    def merge(self, accumulator: ACC, accumulators: Iterable[ACC]) -> None:
        """Take other accumulators in: needed for session windows."""
        raise NotImplementedError(f"{type(self).__name__} has no merge(): session windows need one")

    def get_result_type(self) -> DataType | str:
        """The type of the result."""
        raise NotImplementedError(f"{type(self).__name__} has no get_result_type(): give result_type to udaf()")

    def get_accumulator_type(self) -> DataType | str:
        """The type of the accumulator."""
        raise NotImplementedError(f"{type(self).__name__} has no get_accumulator_type()")


class AggregateFunction(ImperativeAggregateFunction[T, ACC]):
    """One value for a group of rows."""

    @abstractmethod
    def get_value(self, accumulator: ACC) -> T:
        """The value."""


class TableAggregateFunction(ImperativeAggregateFunction[T, ACC]):
    """Any number of rows for a group of rows."""

    @abstractmethod
    def emit_value(self, accumulator: ACC) -> Iterable[T]:
        """Yields all rows of the group."""


class DelegatingScalarFunction(ScalarFunction):
    """A plain function as a scalar function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        if inspect.isgeneratorfunction(function):
            raise TypeError("a scalar function returns one value: use udtf() for one that yields rows")

    def eval(self, *args: Any) -> Any:
        """Call it."""
        return self.function(*args)


class DelegatingAsyncScalarFunction(AsyncScalarFunction):
    """A coroutine function as a scalar function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    async def eval(self, *args: Any) -> Any:
        """Await it."""
        return await self.function(*args)


class DelegatingTableFunction(TableFunction):
    """A plain function as a table function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def eval(self, *args: Any) -> Any:
        """Call it."""
        return self.function(*args)


class DelegatingPandasAggregateFunction(AggregateFunction[Any, Any]):
    """A function of Series, or an aggregate function whose accumulator gets whole Series, as an aggregate function."""

    def __init__(self, function: Any) -> None:
        self.function = function

    def open(self, function_context: FunctionContext) -> None:
        """Open the function, if it is a class."""
        if isinstance(self.function, UserDefinedFunction):
            self.function.open(function_context)

    def close(self) -> None:
        """Close the function, if it is a class."""
        if isinstance(self.function, UserDefinedFunction):
            self.function.close()

    def accumulate_series(self, *series: Any) -> Any:
        """The result for a whole group."""
        function = self.function
        if not isinstance(function, AggregateFunction):
            return function(*series)
        accumulator = function.create_accumulator()
        function.accumulate(accumulator, *series)
        return function.get_value(accumulator)

    def create_accumulator(self) -> Any:
        """Groups are kept by the runtime."""
        return []

    def accumulate(self, accumulator: Any, *args: Any) -> None:
        """Keep a row."""
        accumulator.append(args)

    def get_value(self, accumulator: Any) -> Any:
        """Not used: see accumulate_series."""
        raise NotImplementedError

    def get_result_type(self) -> DataType | str:
        """Return the type of the function's result."""
        result: DataType | str = self.function.get_result_type()
        return result
