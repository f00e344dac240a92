"""Timestamps and watermarks from a WatermarkStrategy (rule 6.2).

An assigner overwrites what upstream has set: its timestamps replace the old ones, and upstream watermarks end here,
except the final one. Only a watermark larger than the previous one is passed on, and only such a watermark ends
idleness.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import repeat
from numbers import Integral
from typing import Any, Protocol

from penstock.common.errors import MissingTimestampError, PenstockError, TypeMismatchError, shorten
from penstock.common.watermark import (
    MAX_WATERMARK,
    MIN_WATERMARK,
    AscendingTimestampsWatermarks,
    BoundedOutOfOrdernessWatermarks,
    NoWatermarksGenerator,
    Watermark,
    WatermarkGenerator,
    WatermarkOutput,
)
from penstock.common.watermark_strategy import (
    CallableTimestampAssigner,
    TimestampAssigner,
    WatermarkGeneratorContext,
    WatermarkStrategy,
)
from penstock.core.return_values import describe
from penstock.runtime.operators.failures import batch_error
from penstock.runtime.operators.operator import OperatorContext, Output, StreamOperator
from penstock.runtime.operators.user_errors import user_error
from penstock.runtime.records.batch import Timestamps, Values

_BUILT_IN = (BoundedOutOfOrdernessWatermarks, AscendingTimestampsWatermarks, NoWatermarksGenerator)
_MAX_BACKOFF = 64


class Emitter(Protocol):
    """Receives the watermarks of a generator."""

    watermark: int
    idle: bool

    def advance(self, watermark: int) -> None:
        """Handle a watermark of the generator."""

    def set_idle(self, *, idle: bool) -> None:
        """Mark the stream as idle or active."""


class WatermarkEmitter:
    """Passes on watermarks that advance, and changes of idleness."""

    def __init__(self, output: Output) -> None:
        self.watermark = MIN_WATERMARK
        self.idle = False
        self._output = output

    def advance(self, watermark: int) -> None:
        """Emit the watermark if it is larger than the last one."""
        if watermark > self.watermark:
            self.watermark = watermark
            self.set_idle(idle=False)
            self._output.emit_watermark(watermark)

    def set_idle(self, *, idle: bool) -> None:
        """Emit the status if it has changed."""
        if idle is not self.idle:
            self.idle = idle
            self._output.emit_status(idle=idle)


class TimestampsAndWatermarksOperator(StreamOperator):
    """Assigns timestamps and emits watermarks.

    The built-in generators need only the largest timestamp of a batch. They can therefore run in the source stage and
    start again with every batch: clocks downstream never go back. A custom generator is kept across batches.
    """

    def __init__(self, strategy: WatermarkStrategy, watermark_interval: int = 200) -> None:
        self.strategy = strategy
        self.watermark_interval = watermark_interval
        self.idle_timeout = strategy.idle_timeout  # in the source stage, the driver detects idle splits
        self._built_in = type(strategy.create_generator()) in _BUILT_IN
        self.stateful = not self._built_in
        self.makes_watermarks = type(strategy.create_generator()) is not NoWatermarksGenerator

    def user_functions(self) -> list[Any]:
        """The strategy, which contains the user's assigner and generator."""
        return [self.strategy]

    def setup(self, context: OperatorContext, output: Output) -> None:
        """Create the generator."""
        super().setup(context, output)
        self._sink = _Sink()
        self._latest = MIN_WATERMARK  # the largest of the timestamps assigned last
        self.restart()

    def restart(self) -> None:
        """Create a new generator and clock for the next split."""
        self.emitter: Emitter = WatermarkEmitter(self.output)
        self.generator: WatermarkGenerator = (
            NoWatermarksGenerator()  # in batch execution there is one watermark, at the end
            if self.context.batch_execution
            else self.strategy.create_generator(WatermarkGeneratorContext(self.context.metrics))
        )
        self._calls_generator = type(self.generator) not in _BUILT_IN
        self._last_record_at: int | None = None
        self._timed_out = False
        self._next_periodic: int | None = None
        self._backoff = 1

    def open(self) -> None:
        """Restore generator and idleness from the last checkpoint."""
        kept = self.context.operator_state.get_raw("generator") if self._keeps_state else None
        if kept is not None:
            self.restore_generator(kept)

    def snapshot_state(self, checkpoint_id: int) -> None:
        """Store generator and idleness."""
        if self._keeps_state:
            self.context.operator_state.put_raw("generator", self.kept_generator())

    def kept_generator(self) -> tuple[Any, ...]:
        """Return the state that must survive between batches."""
        generator = self.generator if self._calls_generator else None
        return (generator, self.emitter.watermark, self.emitter.idle, self._last_record_at, self._timed_out)

    def restore_generator(self, kept: tuple[Any, ...]) -> None:
        """Restore what `kept_generator` returned."""
        generator, self.emitter.watermark, self.emitter.idle, self._last_record_at, *timed_out = kept
        self._timed_out = timed_out[0] if timed_out else self.emitter.idle
        if generator is not None:
            self.generator = generator

    @property
    def emitted(self) -> int:
        """The last watermark; in the source stage, that of the current range."""
        return self.emitter.watermark

    def stay_awake(self) -> None:
        """Restart the idle period: the operator could not receive records."""
        self._last_record_at = self.context.processing_time()

    @property
    def _keeps_state(self) -> bool:
        return self.stateful or self.idle_timeout is not None

    # -- records ------------------------------------------------------------------------------------------------

    def process_batch(self, values: Values, timestamps: Timestamps) -> None:
        """Assign timestamps and pass the records on, split wherever the generator emits a watermark."""
        if not values:
            return
        self._last_record_at = self.context.processing_time()
        self._timed_out = False
        stamps = self._assign(values, timestamps)
        if self._calls_generator:
            self._punctuate(values, stamps)
            return
        generator = self.generator
        if stamps is not None and isinstance(generator, BoundedOutOfOrdernessWatermarks):
            before = generator.max_timestamp
            generator.max_timestamp = self._latest if before is None else max(before, self._latest)
        self.output.emit(values, stamps)

    def _punctuate(self, values: Values, stamps: Timestamps) -> None:
        """Pass every record to the generator, and emit its watermarks right after the record that caused them."""
        on_event, sink, start, returned = self.generator.on_event, self._sink, 0, None
        for position, value in enumerate(values):
            stamp = None if stamps is None else stamps[position]
            try:
                returned = on_event(value, TimestampAssigner.NO_TIMESTAMP if stamp is None else stamp, sink)
            except Exception as error:
                raise user_error(self.context, error, "on_event") from None
            if sink.events:
                self._emit_slice(values, stamps, start, position + 1)
                start = position + 1
                self._drain()
        self._check_returned(returned, "on_event")
        if start < len(values):
            self._emit_slice(values, stamps, start, len(values))

    def _check_returned(self, returned: Any, method: str) -> None:
        """Reject a generator that returns its watermark. It does so for every record, so one check is enough."""
        if returned is not None:
            raise TypeMismatchError(
                f"{describe(self.generator, method)} returned {shorten(returned)}, but its return value is not used: "
                "call output.emit_watermark(Watermark(...))",
                operator_name=self.context.operator_name,
            )

    def _emit_slice(self, values: Values, stamps: Timestamps, start: int, end: int) -> None:
        self.output.emit(values[start:end], None if stamps is None else stamps[start:end])

    # -- timestamps ---------------------------------------------------------------------------------------------

    def _assign(self, values: Values, timestamps: Timestamps) -> Timestamps:
        assigner = self.strategy.timestamp_assigner
        if assigner is None:
            if not self.makes_watermarks or not self._built_in or timestamps is None:
                return timestamps  # records need no timestamp until an operator uses it
            if None in timestamps:
                self._latest = max((stamp for stamp in timestamps if stamp is not None), default=MIN_WATERMARK)
                return timestamps
            stamps = timestamps
        else:
            stamps = self._extract(assigner, values, timestamps)
        if set(map(type, stamps)) != {int}:
            stamps = [
                stamp if type(stamp) is int else self._as_timestamp(stamp, value)
                for stamp, value in zip(stamps, values, strict=True)
            ]
        self._latest = max(stamps)
        if self._latest > MAX_WATERMARK or min(stamps) < MIN_WATERMARK:
            raise self._out_of_range(values, stamps)
        return stamps

    def _extract(self, assigner: TimestampAssigner, values: Values, timestamps: Timestamps) -> list[Any]:
        rest = iter(values)
        try:
            if isinstance(assigner, CallableTimestampAssigner) and not assigner.takes_timestamp:
                function = assigner.function
                return [function(value) for value in rest]
            extract = assigner.extract_timestamp
            if isinstance(assigner, CallableTimestampAssigner):
                extract = assigner.function
            return [extract(value, previous) for value, previous in self._with_previous(assigner, rest, timestamps)]
        except Exception as error:
            raise batch_error(self.context, error, "extract_timestamp", values, rest) from None

    def _with_previous(
        self, assigner: TimestampAssigner, values: Iterator[Any], timestamps: Timestamps
    ) -> Iterator[tuple[Any, int]]:
        previous: Iterable[int]
        if assigner.uses_processing_time:
            previous = repeat(self.context.processing_time())
        elif timestamps is None:
            previous = repeat(TimestampAssigner.NO_TIMESTAMP)
        else:
            previous = [TimestampAssigner.NO_TIMESTAMP if stamp is None else stamp for stamp in timestamps]
        return zip(values, previous, strict=False)

    def _as_timestamp(self, stamp: Any, value: Any) -> int:
        if stamp is None:
            raise self._missing(value)
        whole = isinstance(stamp, Integral) or (isinstance(stamp, float) and stamp.is_integer())
        if whole and not isinstance(stamp, bool):
            return int(stamp)  # for instance numpy integers
        raise TypeMismatchError(
            f"the timestamp assigner returned {shorten(stamp)} of type {type(stamp).__name__}: "
            "return milliseconds since the epoch as an int",
            operator_name=self.context.operator_name,
            record=value,
        )

    def _out_of_range(self, values: Values, stamps: list[Any]) -> PenstockError:
        position = next(at for at, stamp in enumerate(stamps) if not MIN_WATERMARK <= stamp <= MAX_WATERMARK)
        return TypeMismatchError(
            f"the timestamp {shorten(stamps[position])} does not fit into 64 bits: "
            "return milliseconds since the epoch from the timestamp assigner",
            operator_name=self.context.operator_name,
            record=values[position],
        )

    def _missing(self, value: Any) -> PenstockError:
        return MissingTimestampError(
            "the timestamp assigner returned None: return milliseconds since the epoch as an int",
            operator_name=self.context.operator_name,
            record=value,
        )

    # -- watermarks and idleness --------------------------------------------------------------------------------

    def process_watermark(self, watermark: int) -> None:
        """Drop upstream watermarks, except the final one."""
        if watermark == MAX_WATERMARK:
            self.emitter.advance(MAX_WATERMARK)

    def process_status(self, *, idle: bool) -> None:
        """Drop upstream idleness, like upstream watermarks: this operator detects it itself."""

    def end_batch(self) -> None:
        """Emit a periodic watermark, or detect idleness."""
        now = self.context.processing_time()
        if self.idle_timeout is not None and not self._timed_out:
            if self._last_record_at is None:
                self._last_record_at = now  # the idle period starts with the job
            elif now - self._last_record_at > self.idle_timeout:
                self._timed_out = True
                self.emitter.set_idle(idle=True)
        if self._timed_out:
            return
        before = self.emitter.watermark
        try:
            returned: Any = self.generator.on_periodic_emit(self._sink)
        except Exception as error:
            raise user_error(self.context, error, "on_periodic_emit") from None
        self._check_returned(returned, "on_periodic_emit")
        self._drain()
        if self._calls_generator:
            # Only a custom generator may advance without records. As long as it advances, it is called again soon.
            self._backoff = 1 if self.emitter.watermark > before else min(2 * self._backoff, _MAX_BACKOFF)
            self._next_periodic = now + self.watermark_interval * self._backoff

    def next_wakeup(self) -> int | None:
        """Return when idleness begins if no record comes, or when to call a custom generator again."""
        if self.emitter.watermark == MAX_WATERMARK or self._timed_out:
            return None
        times = [] if self._next_periodic is None else [self._next_periodic]
        if self.idle_timeout is not None and self._last_record_at is not None:
            times.append(self._last_record_at + self.idle_timeout + 1)
        return min(times, default=None)

    def _drain(self) -> None:
        events, self._sink.events = self._sink.events, []
        for event in events:
            if isinstance(event, Watermark):
                self.emitter.advance(event.timestamp)
            else:
                self.emitter.set_idle(idle=event)


def aligned_operator(operators: Iterable[Any]) -> TimestampsAndWatermarksOperator | None:
    """Return the operator of a chain whose strategy aligns its source with others."""
    for operator in operators:
        if isinstance(operator, TimestampsAndWatermarksOperator) and operator.strategy.alignment is not None:
            return operator
    return None


class _Sink(WatermarkOutput):
    """Stores what a generator emits, in order, until the records before it have been passed on."""

    __slots__ = ("events",)

    def __init__(self) -> None:
        self.events: list[Watermark | bool] = []

    def emit_watermark(self, watermark: Watermark) -> None:
        if not isinstance(watermark, Watermark):
            raise TypeError(f"emit_watermark takes a Watermark, got {watermark!r}: pass Watermark({watermark!r})")
        self.events.append(watermark)

    def mark_idle(self) -> None:
        self.events.append(True)

    def mark_active(self) -> None:
        self.events.append(False)
