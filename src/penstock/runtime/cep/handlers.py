"""Handlers of matches: the user's process, select or flat_select function."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from penstock.common.errors import InvalidProgramError, shorten
from penstock.core.cep import (
    Match,
    PatternFlatSelectFunction,
    PatternFlatTimeoutFunction,
    PatternProcessFunction,
    PatternSelectFunction,
    PatternTimeoutFunction,
    TimedOutPartialMatchHandler,
)
from penstock.core.functions import Function
from penstock.core.output_tag import OutputTag

__all__ = ["FlatSelectHandler", "MatchHandler", "ProcessHandler", "SelectHandler"]

Context = PatternProcessFunction.Context


class MatchHandler(ABC):
    """Converts matches to results."""

    method = ""
    """The name of the user's method, for error messages."""
    timeout_method = "timeout"

    functions: list[Any]
    """The user's functions, to open and close."""
    handles_timeouts: bool

    @abstractmethod
    def matched(self, match: Match[Any], ctx: Context) -> Iterable[Any] | None:
        """Return the results of a match."""

    @abstractmethod
    def timed_out(self, match: Match[Any], ctx: Context) -> Iterable[Any] | None:
        """Return the results of a timed-out partial match: pairs of tag and value."""


class ProcessHandler(MatchHandler):
    """Calls a PatternProcessFunction for ``process``."""

    method = "process_match"
    timeout_method = "process_timed_out_match"

    def __init__(self, function: Any) -> None:
        self.functions = [function]
        self._call = _call_of(function, PatternProcessFunction, "process_match", "process")
        self.handles_timeouts = isinstance(function, TimedOutPartialMatchHandler)

    def matched(self, match: Match[Any], ctx: Context) -> Iterable[Any] | None:
        """Call the function with a match."""
        results: Iterable[Any] | None = self._call(match, ctx)
        return results

    def timed_out(self, match: Match[Any], ctx: Context) -> Iterator[Any]:
        """Call the function with a timed-out match. Its results go to side outputs."""
        for result in self.functions[0].process_timed_out_match(match, ctx) or ():
            if not (type(result) is tuple and len(result) == 2 and isinstance(result[0], OutputTag)):
                raise InvalidProgramError(
                    f"process_timed_out_match() yielded {shorten(result)}, but it has no main output: call "
                    "ctx.output(tag, value), or yield tag and value"
                )
            yield result


class SelectHandler(MatchHandler):
    """Calls the function of ``select``."""

    method = "select"

    def __init__(self, select: Any, timeout: Any = None, tag: OutputTag | None = None) -> None:
        self.functions = [select] if timeout is None else [select, timeout]
        self.select = _call_of(select, PatternSelectFunction, "select", "select")
        self.handles_timeouts = timeout is not None
        if timeout is not None:
            self._timeout = _call_of(timeout, PatternTimeoutFunction, "timeout", "select")
        self._tag = tag

    def matched(self, match: Match[Any], ctx: Context) -> Iterable[Any]:
        """Return the result of a match."""
        return (self.select(match),)

    def timed_out(self, match: Match[Any], ctx: Context) -> Iterable[Any]:
        """Return the result of a timed-out match, for the side output."""
        return ((self._tag, self._timeout(match, ctx.timestamp())),)


class FlatSelectHandler(MatchHandler):
    """Calls the function of ``flat_select``."""

    method = "flat_select"

    def __init__(self, select: Any, timeout: Any = None, tag: OutputTag | None = None) -> None:
        self.functions = [select] if timeout is None else [select, timeout]
        self._select = _call_of(select, PatternFlatSelectFunction, "flat_select", "flat_select")
        self.handles_timeouts = timeout is not None
        if timeout is not None:
            self._timeout = _call_of(timeout, PatternFlatTimeoutFunction, "timeout", "flat_select")
        self._tag = tag

    def matched(self, match: Match[Any], ctx: Context) -> Iterable[Any] | None:
        """Call the function with a match."""
        results: Iterable[Any] | None = self._select(match)
        return results

    def timed_out(self, match: Match[Any], ctx: Context) -> Iterable[Any]:
        """Call the function with a timed-out match. Its results go to the side output."""
        return ((self._tag, result) for result in self._timeout(match, ctx.timestamp()) or ())


def _call_of(function: Any, kind: type[Function], method: str, caller: str) -> Callable[..., Any]:
    """Return the method of a function object, or a plain callable itself."""
    if isinstance(function, kind):
        call: Callable[..., Any] = getattr(function, method)
        return call
    is_class = isinstance(function, type) and issubclass(function, Function)
    if isinstance(function, Function) or is_class or not callable(function):
        hint = " (create an instance of the class)" if is_class else ""
        raise InvalidProgramError(f"{caller}() takes a {kind.__name__} or a function, got {shorten(function)}{hint}")
    plain: Callable[..., Any] = function
    return plain
