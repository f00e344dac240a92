"""The base classes of user-defined functions (T100 to T105)."""

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
        """Return the metric group of the operator."""
        return self._runtime_context.get_metrics_group()

    def get_job_parameter(self, key: str, default_value: str) -> str:
        """Return a global job parameter, or the default as it is."""
        if key in self._parameters or self._runtime_context is None:
            return self._parameters.get(key, default_value)
        found: str = self._runtime_context.get_job_parameter(key, default_value)
        return found if found is default_value else str(found)

    def get_task_name(self) -> str:
        """Return the name of the task."""
        return str(self._runtime_context.get_task_name())

    def get_task_name_with_subtasks(self) -> str:
        """Return the name of the task with the number of the subtask."""
        return str(self._runtime_context.get_task_name_with_subtasks())

    def get_number_of_parallel_subtasks(self) -> int:
        """Return the parallelism of the task."""
        return int(self._runtime_context.get_number_of_parallel_subtasks())

    def get_max_number_of_parallel_subtasks(self) -> int:
        """Return the maximum parallelism of the task."""
        return int(self._runtime_context.get_max_number_of_parallel_subtasks())

    def get_index_of_this_subtask(self) -> int:
        """Return the index of the subtask, from 0."""
        return int(self._runtime_context.get_index_of_this_subtask())

    def get_attempt_number(self) -> int:
        """Return the number of earlier attempts of the task."""
        return int(self._runtime_context.get_attempt_number())


class UserDefinedFunction(ABC):
    """Base class of all user-defined functions."""

    def open(self, function_context: FunctionContext) -> None:
        """Called once before the first row."""
        return

    def close(self) -> None:
        """Called once at the end."""
        return

    def is_deterministic(self) -> bool:
        """Whether the same arguments always give the same result."""
        return True


class ScalarFunction(UserDefinedFunction):
    """Returns one value for each row."""

    @abstractmethod
    def eval(self, *args: Any) -> Any:
        """Return the value."""


class AsyncScalarFunction(UserDefinedFunction):
    """Returns one value for each row, with a coroutine."""

    @abstractmethod
    async def eval(self, *args: Any) -> Any:
        """Return the value."""


class TableFunction(UserDefinedFunction):
    """Yields any number of rows for each row."""

    @abstractmethod
    def eval(self, *args: Any) -> Any:
        """Yield rows."""


class ImperativeAggregateFunction(UserDefinedFunction, Generic[T, ACC]):
    """Base class of aggregate functions."""

    @abstractmethod
    def create_accumulator(self) -> ACC:
        """Return an empty accumulator."""

    @abstractmethod
    def accumulate(self, accumulator: ACC, *args: Any) -> None:
        """Add a row."""

    def retract(self, accumulator: ACC, *args: Any) -> None:
        """Remove a row. Required if the input has updates."""
        raise NotImplementedError(f"{type(self).__name__} needs a retract() method, because its input has updates")

    def merge(self, accumulator: ACC, accumulators: Iterable[ACC]) -> None:
        """Merge other accumulators into this one. Required for session windows."""
        raise NotImplementedError(f"{type(self).__name__} needs a merge() method for session windows")

    def get_result_type(self) -> DataType | str:
        """Return the type of the result."""
        raise NotImplementedError(f"{type(self).__name__} has no get_result_type(): pass result_type to udaf()")

    def get_accumulator_type(self) -> DataType | str:
        """Return the type of the accumulator."""
        raise NotImplementedError(f"{type(self).__name__} has no get_accumulator_type()")


class AggregateFunction(ImperativeAggregateFunction[T, ACC]):
    """Returns one value for a group of rows."""

    @abstractmethod
    def get_value(self, accumulator: ACC) -> T:
        """Return the value."""


class TableAggregateFunction(ImperativeAggregateFunction[T, ACC]):
    """Yields any number of rows for a group of rows."""

    @abstractmethod
    def emit_value(self, accumulator: ACC) -> Iterable[T]:
        """Yield all rows of the group."""


class DelegatingScalarFunction(ScalarFunction):
    """Wraps a plain function as a scalar function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        if inspect.isgeneratorfunction(function):
            raise TypeError("a scalar function must return one value: use udtf() for a function that yields rows")

    def eval(self, *args: Any) -> Any:
        """Call the function."""
        return self.function(*args)


class DelegatingAsyncScalarFunction(AsyncScalarFunction):
    """Wraps a coroutine function as a scalar function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    async def eval(self, *args: Any) -> Any:
        """Await the function."""
        return await self.function(*args)


class DelegatingTableFunction(TableFunction):
    """Wraps a plain function as a table function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def eval(self, *args: Any) -> Any:
        """Call the function."""
        return self.function(*args)


class DelegatingPandasAggregateFunction(AggregateFunction[Any, Any]):
    """Wraps a function of Series, or an aggregate function whose accumulator gets whole Series."""

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
        """Return the result for a whole group."""
        function = self.function
        if not isinstance(function, AggregateFunction):
            return function(*series)
        accumulator = function.create_accumulator()
        function.accumulate(accumulator, *series)
        return function.get_value(accumulator)

    def create_accumulator(self) -> Any:
        """Return None: the runtime keeps the groups."""
        return []

    def accumulate(self, accumulator: Any, *args: Any) -> None:
        """Do nothing: the runtime keeps the rows."""
        accumulator.append(args)

    def get_value(self, accumulator: Any) -> Any:
        """Not used: see accumulate_series."""
        raise NotImplementedError

    def get_result_type(self) -> DataType | str:
        """Return the type of the function's result."""
        result: DataType | str = self.function.get_result_type()
        return result
