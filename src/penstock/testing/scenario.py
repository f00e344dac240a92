"""``given(pipeline).receive(...).at(time).expect(...)``: test a part of a job step by step in event time.

>>> from penstock.core.window.shorthand import tumbling
>>> per_minute = lambda clicks: clicks.key_by(0).window(tumbling(minutes=1)).count()
>>> test = given(per_minute).receive(("ann", "/"), at="10 s").receive(("ann", "/cart"), at="50 s")
>>> test = test.at("59 s").expect_nothing().at("1 min").expect(("ann", 2))
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Self

from penstock.common.errors import InvalidProgramError, shorten
from penstock.common.time import to_millis
from penstock.connectors.sinks import CollectSink
from penstock.core.source import Boundedness, Source, SourceReader, SourceSplit, SplitEnumerator
from penstock.datastream import DataStream, StreamExecutionEnvironment
from penstock.datastream.event_time import Length
from penstock.graph.job_graph import JobGraph
from penstock.runtime.operators.timestamps import TimestampsAndWatermarksOperator
from penstock.testing.mini_cluster import ManualClock, MiniCluster, MiniClusterJob
from penstock.testing.times import Moment, millis_of

__all__ = ["Scenario", "given"]


def given(pipeline: Callable[[DataStream[Any]], DataStream[Any]], *, parallelism: int = 1) -> Scenario:
    """Start a job with a function from a stream to a stream. The methods of the result drive it."""
    return Scenario(pipeline, parallelism)


class Scenario:
    """A job that receives records, event time and processing time on request."""

    def __init__(self, pipeline: Callable[[DataStream[Any]], DataStream[Any]], parallelism: int = 1) -> None:
        if not callable(pipeline):
            raise InvalidProgramError(f"given() takes a function from a stream to a stream, got {shorten(pipeline)}")
        self._clock = ManualClock()
        self._steps = _Steps()
        self._sink = CollectSink()
        self._event_time: int | None = None
        cluster = MiniCluster(clock=self._clock)
        env = StreamExecutionEnvironment(executor=cluster).set_parallelism(parallelism)
        result: Any = pipeline(env.from_source(self._steps, source_name="given"))
        if not isinstance(result, DataStream):
            raise InvalidProgramError(
                f"given() takes a function that returns a stream, but it returned {shorten(result)}"
            )
        result.sink_to(self._sink)
        self._job = cluster.start(list(env.sinks), env.job_settings(None))
        self._close = weakref.finalize(self, _close, self._job, self._sink)
        self._own_watermarks = _assigns_watermarks(self._job.graph)

    def receive(self, *records: Any, at: Moment | None = None) -> Self:
        """Process records, with this timestamp or without one."""
        timestamp = None if at is None else millis_of(at)
        self._steps.elements.extend(_Record(record, timestamp) for record in records)
        self._job.run()
        return self

    def at(self, time: Moment) -> Self:
        """Advance event time: nothing up to that time is still to come."""
        if self._own_watermarks:
            raise InvalidProgramError(
                "the pipeline assigns timestamps and watermarks, so at() has no effect on it: test the part after "
                "with_event_time(), or send records that advance event time, and call end()"
            )
        advanced = millis_of(time)
        if self._event_time is not None and advanced < self._event_time:
            raise InvalidProgramError(
                f"event time cannot go back from {self._event_time} ms to {advanced} ms; to send a late record, use "
                "receive(..., at=time)"
            )
        self._event_time = advanced
        self._steps.elements.append(_Watermark(self._event_time))
        self._job.run()
        return self

    def wait(self, length: Length) -> Self:
        """Advance processing time, which starts at 0."""
        self._clock.advance(to_millis(length))
        self._job.run()
        return self

    def end(self) -> Self:
        """End the input and event time: all windows and event-time timers fire."""
        self._steps.ended = True
        self._job.run()
        return self

    def results(self) -> list[Any]:
        """Return the results of the pipeline since the last call."""
        queue = self._sink.records
        return [record for _ in range(queue.qsize()) for record in queue.get_nowait()]

    def expect(self, *records: Any, in_any_order: bool = False) -> Self:
        """Check that the pipeline has emitted exactly these records since the last expectation."""
        expected, got = list(records), self.results()
        same = _same_elements(expected, got) if in_any_order else expected == got
        if not same:
            order = " in any order" if in_any_order else ""
            raise AssertionError(f"{self._when()}, expected{order}{_listed(expected)}\nbut got{_listed(got)}")
        return self

    def expect_nothing(self) -> Self:
        """Check that the pipeline has emitted nothing since the last expectation."""
        return self.expect()

    def close(self) -> None:
        """Close functions and sinks. Otherwise, the garbage collector does so."""
        self._close()

    def _when(self) -> str:
        if self._steps.ended:
            return "after the end of the input"
        return "before any event time" if self._event_time is None else f"at event time {self._event_time} ms"


def _close(job: MiniClusterJob, sink: CollectSink) -> None:
    job.close()
    sink.release()


def _same_elements(expected: list[Any], got: list[Any]) -> bool:
    """Whether two lists are permutations of each other. Records need not be hashable."""
    rest = list(got)
    for record in expected:
        if record not in rest:
            return False
        rest.remove(record)
    return not rest


def _listed(records: list[Any]) -> str:
    return "".join(f"\n  {record!r}" for record in records) or " nothing"


def _assigns_watermarks(graph: JobGraph) -> bool:
    operators = (operator.operator for vertex in graph.vertices for operator in vertex.operators)
    return any(isinstance(operator, TimestampsAndWatermarksOperator) for operator in operators)


@dataclass(frozen=True)
class _Record:
    value: Any
    timestamp: int | None


@dataclass(frozen=True)
class _Watermark:
    timestamp: int


class _Steps(Source[Any]):
    """Returns the added steps. Tasks receive them with the plan of a batch."""

    makes_watermarks = True

    def __init__(self) -> None:
        self.elements: list[_Record | _Watermark] = []
        self.ended = False

    def __getstate__(self) -> dict[str, Any]:
        return {"elements": [], "ended": False}

    def get_boundedness(self) -> Boundedness:
        return Boundedness.CONTINUOUS_UNBOUNDED

    @property
    def may_end(self) -> bool:
        return True

    def create_enumerator(self, parallelism: int) -> SplitEnumerator:
        return _StepEnumerator(self)

    def create_reader(self) -> SourceReader:
        return _StepReader()

    def initial_offset(self, split: SourceSplit) -> Any:
        return 0


@dataclass(frozen=True)
class _StepSplit(SourceSplit):
    elements: list[_Record | _Watermark] = field(default_factory=list, compare=False)


class _StepEnumerator(SplitEnumerator):
    def __init__(self, steps: _Steps) -> None:
        self._steps = steps

    def discover_splits(self) -> list[SourceSplit]:
        return [_StepSplit("given")]

    def latest_offset(self, split: SourceSplit, start_offset: Any, max_records: int) -> Any:
        return min(len(self._steps.elements), start_offset + max_records)

    def is_finished(self, split: SourceSplit, offset: Any) -> bool:
        return self._steps.ended and offset >= len(self._steps.elements)

    def prepare(self, split: SourceSplit, start_offset: Any, end_offset: Any) -> SourceSplit:
        assert isinstance(split, _StepSplit)
        return replace(split, elements=self._steps.elements[start_offset:end_offset])


class _StepReader(SourceReader):
    def read(self, split: SourceSplit, start_offset: Any, end_offset: Any) -> Iterator[Any]:
        assert isinstance(split, _StepSplit)
        for element in split.elements:
            if isinstance(element, _Watermark):
                yield element.timestamp
            else:
                yield [element.value], None if element.timestamp is None else [element.timestamp]
