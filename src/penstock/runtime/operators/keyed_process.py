"""KeyedProcessFunction: keyed state and timers for every record of a keyed stream (spec: 6.3)."""

from __future__ import annotations

from typing import Any

from penstock.core.functions import KeyedProcessFunction
from penstock.core.output_tag import OutputTag
from penstock.core.time_domain import TimeDomain
from penstock.core.timerservice import TimerService
from penstock.runtime.collector import Collector
from penstock.runtime.operator import KeySelect, OperatorContext, Output, StreamOperator, Timestamps, Values
from penstock.runtime.operators.udf import close_function, open_function
from penstock.runtime.timer_service import KeyedTimerService
from penstock.runtime.timers import InternalTimerService
from penstock.runtime.user_errors import user_error


class KeyedProcessContext(KeyedProcessFunction.OnTimerContext):
    """The `ctx` of process_element and on_timer."""

    def __init__(self, operator: KeyedProcessOperator) -> None:
        self._backend = operator.backend
        self._collector = operator.collector
        self._timer_service = KeyedTimerService(operator.timers, operator.context.processing_time)
        self.current_timestamp: int | None = None
        self.current_domain: TimeDomain | None = None

    def timestamp(self) -> int | None:  # type: ignore[override]
        """Timestamp of the current record or timer; None if the record has none."""
        return self.current_timestamp

    def get_current_key(self) -> Any:
        """Key of the current record or timer."""
        return self._backend.key

    def timer_service(self) -> TimerService:
        """Time and timers."""
        return self._timer_service

    def time_domain(self) -> TimeDomain:
        """Domain of the timer that fires."""
        assert self.current_domain is not None
        return self.current_domain

    def output(self, tag: OutputTag, value: Any) -> None:
        """Emit to a side output."""
        self._collector.side(tag, value, self.current_timestamp)


class KeyedProcessOperator(StreamOperator):
    """Runs a KeyedProcessFunction."""

    keyed = True
    stateful = True

    timers: InternalTimerService
    collector: Collector

    def __init__(self, function: KeyedProcessFunction, key_selector: KeySelect) -> None:
        self.function = function
        self.key_selector = key_selector

    def user_functions(self) -> list[Any]:
        """The process function."""
        return [self.function]

    def setup(self, context: OperatorContext, output: Output) -> None:
        """Create timers and context."""
        super().setup(context, output)
        assert context.keyed_backend is not None
        self.backend = context.keyed_backend
        self.collector = Collector(context, output)
        self.timers = context.create_timer_service(self._on_event_time, self._on_processing_time)
        self.ctx = KeyedProcessContext(self)

    def open(self) -> None:
        """Open the function."""
        open_function(self.function, self.context)

    def process_batch(self, values: Values, timestamps: Timestamps) -> None:
        """The hot loop of keyed jobs: everything is a local, the key switch is inlined."""
        collector, backend, ctx, timers = self.collector, self.backend, self.ctx, self.timers
        select, entries, process = self.key_selector, self.backend.entries, self.function.process_element
        if timestamps is not None:
            collector.timestamps = []
        append = collector.values.append
        position = 0
        ctx.current_timestamp = None
        try:
            for value in values:
                key = select(value)
                entry = entries.get(key)
                if entry is None:
                    entry = backend.activate(key)
                backend.key = key
                backend.entry = entry
                if timestamps is not None:
                    ctx.current_timestamp = timestamps[position]
                    position += 1
                results = process(value, ctx)
                if results is not None:
                    if timestamps is None:
                        for item in results:
                            if type(item) is tuple and len(item) == 2 and type(item[0]) is OutputTag:
                                collector.side(item[0], item[1], None)
                            else:
                                append(item)
                    else:
                        collector.collect_all(results, ctx.current_timestamp)
                if timers._due:  # noqa: SLF001 - a property call per record shows in the profile
                    timers.fire_due()
        except Exception as error:
            raise user_error(self.context, error, "process_element") from None
        backend.clear_current_key()
        collector.flush()

    def _on_event_time(self, timestamp: int, key: Any, namespace: Any) -> None:
        self._on_timer(timestamp, TimeDomain.EVENT_TIME)

    def _on_processing_time(self, timestamp: int, key: Any, namespace: Any) -> None:
        self._on_timer(timestamp, TimeDomain.PROCESSING_TIME)

    def _on_timer(self, value: int, domain: TimeDomain) -> None:
        ctx = self.ctx
        ctx.current_domain = domain
        ctx.current_timestamp = value
        try:
            results = self.function.on_timer(value, ctx)
            self.collector.collect_all(results, value if domain is TimeDomain.EVENT_TIME else None)
        except Exception as error:
            raise user_error(self.context, error, "on_timer") from None

    def flush(self) -> None:
        """Emit what timers produced."""
        self.collector.flush()

    def close(self) -> None:
        """Close the function."""
        close_function(self.function)
