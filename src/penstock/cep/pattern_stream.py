"""Applies a pattern to a stream and processes its matches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.cep.nfa_compiler import NFACompiler
from penstock.cep.pattern import Pattern
from penstock.common.errors import InvalidProgramError, shorten
from penstock.common.typeinfo import TypeInformation
from penstock.common.typeinfo.base import checked_type
from penstock.core.cep import (
    PatternFlatSelectFunction,
    PatternFlatTimeoutFunction,
    PatternProcessFunction,
    PatternSelectFunction,
    PatternTimeoutFunction,
)
from penstock.core.functions import NullByteKeySelector
from penstock.core.output_tag import OutputTag
from penstock.datastream.data_stream import DataStream
from penstock.datastream.keyed_stream import KeyedStream
from penstock.runtime.cep.handlers import FlatSelectHandler, MatchHandler, ProcessHandler, SelectHandler
from penstock.runtime.cep.operator import CepOperator
from penstock.runtime.operators.type_check import declare_output_type

__all__ = ["CEP", "EventComparator", "PatternStream"]

EventComparator = Callable[[Any, Any], int]
"""Compares two events with the same timestamp: negative if the first comes first, positive if the second does."""


class CEP:
    """The entry point: ``CEP.pattern(stream, pattern)``."""

    @staticmethod
    def pattern(
        stream: DataStream, pattern: Pattern[Any], comparator: EventComparator | Any | None = None
    ) -> PatternStream:
        """Apply a pattern to a stream: per key for a keyed stream, otherwise to all records, in one task.

        :param comparator: orders events with the same timestamp: a function of two events, or a ``compare`` method
        """
        if not isinstance(stream, DataStream):
            raise InvalidProgramError(f"CEP.pattern() takes a stream, got {shorten(stream)}")
        if not isinstance(pattern, Pattern):
            raise InvalidProgramError(f"CEP.pattern() takes a Pattern, got {shorten(pattern)}")
        compare = getattr(comparator, "compare", comparator)
        if compare is not None and not callable(compare):
            raise InvalidProgramError(
                f"the comparator of CEP.pattern() must be a function of two events, got {shorten(comparator)}"
            )
        return PatternStream(stream, pattern, compare)


class PatternStream:
    """A stream and a pattern. Methods return a new PatternStream, or the stream of results."""

    def __init__(
        self,
        stream: DataStream,
        pattern: Pattern[Any],
        comparator: EventComparator | None = None,
        *,
        event_time: bool = True,
        late_tag: OutputTag | None = None,
    ) -> None:
        self._stream = stream
        self._pattern = pattern
        self._comparator = comparator
        self._event_time = event_time
        self._late_tag = late_tag

    def in_event_time(self) -> PatternStream:
        """Process events in the order of their timestamps, up to the watermark. This is the default."""
        return self._with(event_time=True)

    def in_processing_time(self) -> PatternStream:
        """Process events in the order of their arrival."""
        return self._with(event_time=False)

    def side_output_late_data(self, late_data_output_tag: OutputTag) -> PatternStream:
        """Send late events to a side output instead of dropping them."""
        if not isinstance(late_data_output_tag, OutputTag):
            raise InvalidProgramError(
                f"side_output_late_data() takes an OutputTag, got {shorten(late_data_output_tag)}"
            )
        return self._with(late_tag=late_data_output_tag)

    def process(
        self,
        function: PatternProcessFunction[Any, Any] | Callable[..., Any],
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Apply a function with any number of results for each match, with timestamps and side outputs.

        If it is also a :class:`TimedOutPartialMatchHandler`, it receives timed-out partial matches.
        """
        return self._build(ProcessHandler(function), output_type)

    def select(self, *functions: Any, output_type: TypeInformation | None = None) -> DataStream:
        """Emit one result for each match: ``select(f)``, or ``select(tag, timeout_function, f)`` to handle timeouts.

        The results of the timeout function go to the side output.
        """
        return self._select("select", SelectHandler, functions, output_type)

    def flat_select(self, *functions: Any, output_type: TypeInformation | None = None) -> DataStream:
        """Emit any number of results: ``flat_select(f)`` or ``flat_select(tag, timeout_function, f)``."""
        return self._select("flat_select", FlatSelectHandler, functions, output_type)

    # -- internals ----------------------------------------------------------------------------------------------

    def _with(self, *, event_time: bool | None = None, late_tag: OutputTag | None = None) -> PatternStream:
        return PatternStream(
            self._stream,
            self._pattern,
            self._comparator,
            event_time=self._event_time if event_time is None else event_time,
            late_tag=late_tag or self._late_tag,
        )

    def _select(
        self,
        method: str,
        handler: Callable[..., MatchHandler],
        arguments: tuple[Any, ...],
        output_type: TypeInformation | None,
    ) -> DataStream:
        if len(arguments) in {2, 4} and (arguments[-1] is None or isinstance(arguments[-1], TypeInformation)):
            *rest, output_type = arguments
            arguments = tuple(rest)
        if len(arguments) == 1:
            return self._build(handler(arguments[0]), output_type)
        if len(arguments) != 3 or not isinstance(arguments[0], OutputTag):
            raise InvalidProgramError(
                f"{method}() takes a function, or an OutputTag, a timeout function and a function, got "
                f"{shorten(arguments)}"
            )
        tag, timeout, select = arguments
        return self._build(handler(select, timeout, tag), output_type)

    def _build(self, handler: MatchHandler, output_type: TypeInformation | None) -> DataStream:
        if output_type is not None:
            checked_type(output_type, "the output type")
        automaton = NFACompiler.compile(self._pattern)
        keyed = isinstance(self._stream, KeyedStream)
        stream = self._stream if isinstance(self._stream, KeyedStream) else self._stream.key_by(NullByteKeySelector())
        operator = CepOperator(
            automaton,
            handler,
            stream.get_key_selector(),
            event_time=self._event_time,
            comparator=self._comparator,
            late_tag=self._late_tag,
        )
        declare_output_type(operator, output_type)
        result = stream.transform("CepOperator" if keyed else "GlobalCepOperator", operator, output_type)
        return result if keyed else result.force_non_parallel()


__all__ += [
    "PatternFlatSelectFunction",
    "PatternFlatTimeoutFunction",
    "PatternSelectFunction",
    "PatternTimeoutFunction",
]
