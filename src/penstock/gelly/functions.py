"""Calls of user functions, for one record or for a batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NoReturn

from penstock.common.errors import PenstockError, UserFunctionError, shorten
from penstock.gelly.columns import column_of, decode, encode
from penstock.runtime.operators.user_errors import user_traceback

__all__ = ["BatchFunction", "batch"]


class BatchFunction:
    """A function of an Arrow table instead of one record: see :func:`batch`."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = function
        self.__doc__ = function.__doc__

    def __call__(self, table: Any) -> Any:
        """Call the function itself."""
        return self.function(table)


def batch(function: Callable[[Any], Any]) -> BatchFunction:
    """Mark a function that works on batches.

    It receives an Arrow table with the columns of the records (``id`` and ``value`` of vertices; ``source``, ``target``
    and ``value`` of edges), and returns an array with one value per row.

    >>> import pyarrow.compute as pc
    >>> from penstock.gelly import Edge, ExecutionEnvironment, Graph
    >>> env = ExecutionEnvironment.create_collections_environment()
    >>> graph = Graph.from_collection(edges=[Edge(1, 2, 0.5)], env=env)
    >>> doubled = graph.map_edges(batch(lambda edges: pc.multiply(edges["value"], 2)))
    >>> doubled.get_edges().collect()
    [Edge(source=1, target=2, value=1.0)]
    """
    return BatchFunction(function)


def failed(name: str, error: Exception, record: object) -> NoReturn:
    """Raise the error of a user's function, with its name and the record."""
    if isinstance(error, PenstockError):
        raise error
    raise UserFunctionError(name, record=shorten(record), user_traceback=user_traceback(error)) from None


def records_of(table: Any, make: Callable[..., Any]) -> Iterator[Any]:
    """Yield the rows of a table as records."""
    for values in zip(*[decode(column) for column in table.columns], strict=True):
        yield make(*values)


def called(name: str, function: Callable[..., Any], arguments: Iterable[tuple[Any, ...]]) -> list[Any]:
    """Return the results of a function for each tuple of arguments."""
    results = []
    for values in arguments:
        try:
            results.append(function(*values))
        except Exception as error:
            failed(name, error, values[0] if len(values) == 1 else values)
    return results


def mapped(name: str, function: Callable[..., Any], table: Any, make: Callable[..., Any]) -> Any:
    """Return the results of a function for each row of a table, as a column."""
    if isinstance(function, BatchFunction):
        try:
            result = function(table)
        except Exception as error:
            failed(name, error, f"a batch of {table.num_rows} rows")
        return column_of(result, table.num_rows, name)
    return encode(called(name, function, ((record,) for record in records_of(table, make))))
