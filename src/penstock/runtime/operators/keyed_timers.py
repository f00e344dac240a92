"""The base of keyed process operators with two inputs: timers, and the loop that calls a function with a key."""

from __future__ import annotations

from typing import Any

from penstock.common.errors import shorten
from penstock.core.output_tag import OutputTag
from penstock.core.time_domain import TimeDomain
from penstock.core.timerservice import TimerService
from penstock.runtime.operators.collector import Collector
from penstock.runtime.operators.emission import collect_results
from penstock.runtime.operators.failures import keyed_error
from penstock.runtime.operators.function_operator import FunctionOperator
from penstock.runtime.operators.operator import OperatorContext, Output
from penstock.runtime.operators.user_errors import user_error
from penstock.runtime.records.batch import KeySelect, Timestamps, Values
from penstock.runtime.state.backend import KeyedStateBackend
from penstock.runtime.timers.internal_timer_service import InternalTimerService
from penstock.runtime.timers.timer_service import KeyedTimerService


class KeyedContextBase:
    """The parts of a `ctx` that all keyed process functions have."""

    def __init__(self, operator: KeyedTimerOperator) -> None:
        self._operator = operator
        self._backend = operator.backend
        self._collector = operator.collector
        self._timer_service = KeyedTimerService(operator.timers, operator.context.processing_time)
        self.current_timestamp: int | None = None
        self.current_domain: TimeDomain | None = None

    def timestamp(self) -> int | None:
        """Timestamp of the current record or timer; None if the record has none."""
        return self.current_timestamp

    def get_current_key(self) -> Any:
        """Key of the current record or timer."""
        return self._backend.key

    def timer_service(self) -> TimerService:
        """Time and timers."""
        return self._timer_service

    def time_domain(self) -> TimeDomain:
        """Time domain of the firing timer."""
        assert self.current_domain is not None
        return self.current_domain

    def output(self, tag: OutputTag, value: Any) -> None:
        """Emit to a side output."""
        self._collector.side(tag, value, self.current_timestamp)


class KeyedTimerOperator(FunctionOperator):
    """Base of operators with keys and timers. Subclasses create `ctx` and assign a method to each input."""

    keyed = True
    stateful = True

    collector: Collector
    timers: InternalTimerService
    ctx: Any

    def setup(self, context: OperatorContext, output: Output) -> None:
        """Create timers and context."""
        super().setup(context, output)
        assert context.keyed_backend is not None
        self.backend: KeyedStateBackend = context.keyed_backend
        self.collector = Collector(context, output)
        self.timers = context.create_timer_service(self._on_event_time, self._on_processing_time)
        self.ctx = self.create_context()

    def create_context(self) -> Any:
        """Create the `ctx` for the function."""
        raise NotImplementedError

    def run_keyed(self, select: KeySelect, process: Any, method: str, values: Values, timestamps: Timestamps) -> None:
        """Call the function for each record, with its key. The key switch is inlined."""
        collector, backend, ctx, timers = self.collector, self.backend, self.ctx, self.timers
        entries = backend.entries
        stamp = None
        try:
            for position, value in enumerate(values):
                key = select(value)
                entry = entries.get(key)
                if entry is None:
                    entry = backend.activate(key)
                backend.key = key
                backend.entry = entry
                if timestamps is not None:
                    stamp = timestamps[position]
                ctx.current_timestamp = stamp
                collect_results(collector, process(value, ctx), stamp)
                if timers.due:  # a plain attribute: a property call per record is visible in the profile
                    timers.fire_due()
        except Exception as error:
            raise keyed_error(self.context, error, method, select, value) from None
        backend.clear_current_key()
        collector.flush()

    def _on_event_time(self, timestamp: int, key: Any, namespace: Any) -> None:
        self._on_timer(timestamp, key, TimeDomain.EVENT_TIME)

    def _on_processing_time(self, timestamp: int, key: Any, namespace: Any) -> None:
        self._on_timer(timestamp, key, TimeDomain.PROCESSING_TIME)

    def _on_timer(self, timestamp: int, key: Any, domain: TimeDomain) -> None:
        ctx = self.ctx
        ctx.current_domain = domain
        ctx.current_timestamp = timestamp
        try:
            results = self.function.on_timer(timestamp, ctx)
            # Only event time gives records a timestamp (rule 3.6).
            collect_results(self.collector, results, timestamp if domain is TimeDomain.EVENT_TIME else None)
        except Exception as error:
            cause = f"(none: the timer at {timestamp} of key {shorten(key)})"
            raise user_error(self.context, error, "on_timer", cause) from None

    def flush(self) -> None:
        """Emit the records of timers."""
        self.collector.flush()
