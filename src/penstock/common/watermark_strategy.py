"""Watermark strategies: timestamps of records and watermarks of streams."""

from __future__ import annotations

import inspect
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Any, ClassVar

from penstock.common.errors import InvalidProgramError, UnsupportedFeatureError
from penstock.common.time import Duration, Time, to_millis
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

__all__ = [
    "MAX_WATERMARK",
    "MIN_WATERMARK",
    "AscendingTimestampsWatermarks",
    "AssignerWithPeriodicWatermarksWrapper",
    "BoundedOutOfOrdernessWatermarks",
    "CallableTimestampAssigner",
    "IngestionTimeAssigner",
    "NoWatermarksGenerator",
    "TimestampAssigner",
    "Watermark",
    "WatermarkAlignment",
    "WatermarkGenerator",
    "WatermarkGeneratorContext",
    "WatermarkOutput",
    "WatermarkStrategy",
]


class TimestampAssigner(ABC):
    """Extracts the event timestamp of a record.

    >>> class FromSecondField(TimestampAssigner):
    ...     def extract_timestamp(self, value, record_timestamp):
    ...         return value[1]
    """

    #: The value of ``record_timestamp`` for a record without a timestamp.
    NO_TIMESTAMP: ClassVar[int] = MIN_WATERMARK

    #: If True, the runtime passes the current processing time as ``record_timestamp``.
    uses_processing_time: ClassVar[bool] = False

    @abstractmethod
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        """Return the timestamp of ``value`` in ms since the epoch."""


class IngestionTimeAssigner(TimestampAssigner):
    """Assigns the processing time at which a record enters the job (ingestion time)."""

    uses_processing_time = True

    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return record_timestamp


class CallableTimestampAssigner(TimestampAssigner):
    """Wraps a plain function: ``function(value)`` or ``function(value, record_timestamp)``."""

    def __init__(self, function: Callable[..., int]) -> None:
        self.function = function
        self.takes_timestamp = _required_arguments(function) != 1

    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return self.function(value, record_timestamp) if self.takes_timestamp else self.function(value)


def _required_arguments(function: Callable[..., Any]) -> int:
    """Return the number of positional arguments that a callable requires, or 1 for getters and builtins without a
    signature.
    """
    if isinstance(function, (operator.itemgetter, operator.attrgetter, operator.methodcaller)):
        return 1
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return 1
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(p.kind in positional and p.default is p.empty for p in parameters)


@dataclass(frozen=True, slots=True)
class WatermarkAlignment:
    """Limits how far a split may run ahead of the slowest one in its group: ``max_drift`` ms of event time."""

    group: str
    max_drift: int
    update_interval: int


@dataclass(frozen=True, slots=True)
class WatermarkGeneratorContext:
    """The argument of a generator factory. ``metric_group`` is that of the operator."""

    metric_group: Any = None

    def get_metric_group(self) -> Any:
        return self.metric_group


GeneratorFactory = Callable[[WatermarkGeneratorContext], WatermarkGenerator]


@dataclass(frozen=True, slots=True)
class _FixedFactory:
    """Creates a generator from its class and arguments. A class, not a closure, so that it can be pickled."""

    make: Callable[[], WatermarkGenerator]

    def __call__(self, context: WatermarkGeneratorContext) -> WatermarkGenerator:
        return self.make()


@dataclass(frozen=True, slots=True)
class WatermarkStrategy:
    """A watermark generator plus, optionally, a timestamp assigner, an idle timeout and an alignment.

    Strategies are immutable: each ``with_`` method returns a copy with one change, in any order.

    >>> strategy = (
    ...     WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(20))
    ...     .with_timestamp_assigner(lambda event, ts: event[1])
    ...     .with_idleness(Duration.of_minutes(1))
    ... )
    >>> strategy.timestamp_assigner.extract_timestamp(("a", 42), TimestampAssigner.NO_TIMESTAMP)
    42
    >>> strategy.idle_timeout
    60000
    """

    generator_factory: GeneratorFactory
    timestamp_assigner: TimestampAssigner | None = None
    idle_timeout: int | None = None
    alignment: WatermarkAlignment | None = None

    @staticmethod
    def for_monotonous_timestamps() -> WatermarkStrategy:
        """Create a strategy for timestamps that never decrease within a source split."""
        return WatermarkStrategy(_FixedFactory(AscendingTimestampsWatermarks))

    @staticmethod
    def for_bounded_out_of_orderness(max_out_of_orderness: Duration | Time | timedelta | int) -> WatermarkStrategy:
        """Create a strategy for records at most ``max_out_of_orderness`` behind the latest one."""
        bound = to_millis(max_out_of_orderness)
        BoundedOutOfOrdernessWatermarks(bound)  # rejects a wrong bound here, where the job is defined
        return WatermarkStrategy(_FixedFactory(partial(BoundedOutOfOrdernessWatermarks, bound)))

    @staticmethod
    def for_generator(
        generator_factory: Callable[[WatermarkGeneratorContext], WatermarkGenerator] | type[WatermarkGenerator],
    ) -> WatermarkStrategy:
        """Create a strategy with your own generator: ``for_generator(lambda ctx: MyGenerator())``, or its class."""
        if not callable(generator_factory):
            raise InvalidProgramError(
                "for_generator takes a function that creates a WatermarkGenerator (each source split needs its own), "
                f"got {generator_factory!r}; write for_generator(lambda ctx: ...)"
            )
        if isinstance(generator_factory, type) and _required_arguments(generator_factory) == 0:
            return WatermarkStrategy(_FixedFactory(generator_factory))
        return WatermarkStrategy(generator_factory)

    @staticmethod
    def no_watermarks() -> WatermarkStrategy:
        """Create a strategy without watermarks, for processing-time jobs."""
        return WatermarkStrategy(_FixedFactory(NoWatermarksGenerator))

    @staticmethod
    def for_ingestion_time() -> WatermarkStrategy:
        """Create a strategy whose timestamps are the processing time at which records enter the job."""
        return WatermarkStrategy(_FixedFactory(AscendingTimestampsWatermarks), IngestionTimeAssigner())

    def with_timestamp_assigner(
        self, timestamp_assigner: TimestampAssigner | Callable[[Any, int], int] | Callable[[Any], int]
    ) -> WatermarkStrategy:
        """Set a :class:`TimestampAssigner`, or a function of ``(value, record_timestamp)`` or ``(value)``."""
        if not isinstance(timestamp_assigner, TimestampAssigner):
            extract = getattr(timestamp_assigner, "extract_timestamp", timestamp_assigner)
            if not callable(extract):
                raise InvalidProgramError(
                    f"a timestamp assigner must be a TimestampAssigner or a function, got {timestamp_assigner!r}"
                )
            timestamp_assigner = CallableTimestampAssigner(extract)
        return replace(self, timestamp_assigner=timestamp_assigner)

    def with_idleness(self, idle_timeout: Duration | Time | timedelta | int) -> WatermarkStrategy:
        """Set the time without records after which a split no longer holds back the watermark."""
        millis = to_millis(idle_timeout)
        if millis <= 0:
            raise InvalidProgramError(f"the idle timeout must be at least 1 ms, got {millis} ms")
        return replace(self, idle_timeout=millis)

    def with_watermark_alignment(
        self,
        watermark_group: str,
        max_allowed_watermark_drift: Duration | Time | timedelta | int,
        update_interval: Duration | Time | timedelta | int | None = None,
    ) -> WatermarkStrategy:
        """Pause source splits that are ahead of the slowest one in the group by more than the drift.

        If the slowest split has no records and no idleness timeout, the others read one batch per update interval
        (default: 1 s).
        """
        drift = to_millis(max_allowed_watermark_drift)
        interval = 1_000 if update_interval is None else to_millis(update_interval)
        if drift < 0 or interval <= 0:
            raise InvalidProgramError(
                f"watermark alignment needs a drift >= 0 and an interval > 0, got {drift} ms and {interval} ms"
            )
        return replace(self, alignment=WatermarkAlignment(watermark_group, drift, interval))

    def create_generator(self, context: WatermarkGeneratorContext | None = None) -> WatermarkGenerator:
        """Create a generator for one source split."""
        generator = self.generator_factory(context or WatermarkGeneratorContext())
        if not isinstance(generator, WatermarkGenerator):
            raise InvalidProgramError(
                f"the watermark generator factory returned {generator!r}, which is not a WatermarkGenerator"
            )
        return generator


class AssignerWithPeriodicWatermarksWrapper:
    """Wraps a Java object in PyFlink; not supported."""

    def __init__(self, j_assigner_with_periodic_watermarks: object) -> None:
        raise UnsupportedFeatureError(
            "AssignerWithPeriodicWatermarksWrapper wraps a Java assigner: use WatermarkStrategy.for_generator instead"
        )
