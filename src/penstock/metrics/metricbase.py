"""Metrics: counters, gauges, meters and distributions, kept in the task's memory."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import ClassVar, TypeVar

__all__ = ["Counter", "Distribution", "Gauge", "Meter", "Metric", "MetricGroup"]

Number = int | float
M = TypeVar("M", bound="Metric")


class Metric:
    """Base of all metrics."""

    __slots__ = ()

    totals: ClassVar[frozenset[str]] = frozenset()
    """The suffixes of values that only increase, so that changes of several tasks can be added."""

    def snapshot(self) -> dict[str, Number]:
        """Return the current values by suffix. A metric with one value has an empty suffix."""
        raise NotImplementedError


class Counter(Metric):
    """Counts up and down.

    >>> counter = Counter()
    >>> counter.inc()
    >>> counter.inc(4)
    >>> counter.get_count()
    5
    """

    __slots__ = ("count",)
    totals = frozenset({""})

    def __init__(self) -> None:
        self.count = 0

    def inc(self, n: int = 1) -> None:
        self.count += n

    def dec(self, n: int = 1) -> None:
        self.count -= n

    def get_count(self) -> int:
        return self.count

    def snapshot(self) -> dict[str, Number]:
        return {"": self.count}


class Gauge(Metric):
    """A value computed on demand."""

    __slots__ = ("_compute",)

    def __init__(self, compute: Callable[[], Number]) -> None:
        self._compute = compute

    def get_value(self) -> Number:
        return self._compute()

    def snapshot(self) -> dict[str, Number]:
        # A gauge calls user code. If that fails, the metric is missing, and the job continues.
        try:
            return {"": self._compute()}
        except Exception:
            return {}


class Meter(Metric):
    """Counts events and measures their rate over a time span.

    Marking an event is one addition: rates come from samples taken when the rate is read, not from a clock read per
    event.
    """

    __slots__ = ("_clock", "_samples", "_span", "count")
    totals = frozenset({"count"})

    def __init__(self, time_span_in_seconds: int = 60, clock: Callable[[], float] = time.monotonic) -> None:
        self.count = 0
        self._span = time_span_in_seconds
        self._clock = clock
        self._samples: deque[tuple[float, int]] = deque([(clock(), 0)], maxlen=1024)

    def mark_event(self, value: int = 1) -> None:
        self.count += value

    def get_count(self) -> int:
        return self.count

    def get_rate(self) -> float:
        """Events per second over the last span, or since the start if that is shorter."""
        now = self._clock()
        samples = self._samples
        while len(samples) > 1 and samples[1][0] <= now - self._span:
            samples.popleft()
        start, count = samples[0]
        samples.append((now, self.count))
        return (self.count - count) / (now - start) if now > start else 0.0

    def snapshot(self) -> dict[str, Number]:
        return {"count": self.count, "rate": self.get_rate()}


class Distribution(Metric):
    """The count, sum, minimum, maximum and mean of values.

    >>> distribution = Distribution()
    >>> for size in (3, 9, 6):
    ...     distribution.update(size)
    >>> distribution.snapshot()
    {'count': 3, 'sum': 18, 'min': 3, 'max': 9, 'mean': 6.0}
    """

    __slots__ = ("count", "max", "min", "sum")
    totals = frozenset({"count", "sum"})

    def __init__(self) -> None:
        self.count = 0
        self.sum: Number = 0
        self.min: Number | None = None
        self.max: Number | None = None

    def update(self, value: Number) -> None:
        self.count += 1
        self.sum += value
        if self.min is None or value < self.min:
            self.min = value
        if self.max is None or value > self.max:
            self.max = value

    def snapshot(self) -> dict[str, Number]:
        if self.min is None or self.max is None:
            return {"count": 0}
        return {
            "count": self.count,
            "sum": self.sum,
            "min": self.min,
            "max": self.max,
            "mean": self.sum / self.count,
        }


class MetricGroup:
    """Named metrics and nested groups.

    >>> group = MetricGroup()
    >>> group.counter("seen").inc(3)
    >>> group.add_group("rule", "high").counter("hits").inc()
    >>> group.gauge("open_sessions", lambda: 7)
    >>> group.snapshot()
    {'seen': 3, 'open_sessions': 7, 'rule.high.hits': 1}
    """

    __slots__ = ("_groups", "_metrics", "scope")

    def __init__(self, scope: str = "") -> None:
        self.scope = scope
        self._metrics: dict[str, Metric] = {}
        self._groups: dict[str, MetricGroup] = {}

    def add_group(self, name: str, extra: str | None = None) -> MetricGroup:
        """Return the subgroup with this name. With ``extra``, return the group ``name.extra`` of a key and value."""
        group = self._groups.get(name)
        if group is None:
            group = self._groups[name] = MetricGroup(self._qualified(name))
        return group if extra is None else group.add_group(extra)

    def counter(self, name: str) -> Counter:
        """Return the counter with this name. Calling it again returns the same counter."""
        return self._register(name, Counter, Counter)

    def gauge(self, name: str, obj: Callable[[], Number]) -> None:
        """Register a function as a gauge. It replaces an earlier gauge with this name."""
        self._metrics[name] = Gauge(obj)

    def meter(self, name: str, time_span_in_seconds: int = 60) -> Meter:
        """Return the meter with this name."""
        return self._register(name, Meter, lambda: Meter(time_span_in_seconds))

    def distribution(self, name: str) -> Distribution:
        """Return the distribution with this name."""
        return self._register(name, Distribution, Distribution)

    histogram = distribution

    def get_metric_identifier(self, metric_name: str) -> str:
        """Return the name of a metric with its groups."""
        return self._qualified(metric_name)

    def snapshot(self) -> dict[str, Number]:
        """Return all values of this group and its subgroups, by full name."""
        values: dict[str, Number] = {}
        for name, metric in self._metrics.items():
            for suffix, value in metric.snapshot().items():
                values[self._qualified(f"{name}.{suffix}" if suffix else name)] = value
        for group in self._groups.values():
            values.update(group.snapshot())
        return values

    def total_names(self) -> set[str]:
        """The full names of the values that add up over tasks and time: counts and sums."""
        names = {
            self._qualified(f"{name}.{suffix}" if suffix else name)
            for name, metric in self._metrics.items()
            for suffix in metric.totals
        }
        return names.union(*(group.total_names() for group in self._groups.values()))

    def _qualified(self, name: str) -> str:
        return f"{self.scope}.{name}" if self.scope else name

    def _register(self, name: str, kind: type[M], make: Callable[[], M]) -> M:
        metric = self._metrics.get(name)
        if isinstance(metric, kind):
            return metric
        made = self._metrics[name] = make()
        return made
