"""Helpers for tests of semantics: results by key, and a source that says exactly what comes when."""

from collections import defaultdict
from dataclasses import dataclass, field, replace

from penstock.common import WatermarkStrategy
from penstock.core.source import Boundedness, Source, SourceReader, SourceSplit, SplitEnumerator

BY_SECOND_FIELD = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value: value[1])


def by_key(records, key=lambda record: record[0]):
    """The records of each key in the order they came: the only order that is defined behind a key_by."""
    found = defaultdict(list)
    for record in records:
        found[key(record)].append(record)
    return dict(found)


def last_by_key(records, key=lambda record: record[0]):
    """The last record of each key."""
    return {key(record): record for record in records}


@dataclass(frozen=True)
class At:
    """A record with a timestamp."""

    value: object
    timestamp: int


@dataclass(frozen=True)
class Wm:
    """A watermark."""

    timestamp: int


IDLE = "-- idle --"


class Script(Source):
    """Splits of which each is a list of elements: plain values, ``At``, ``Wm`` and ``IDLE``.

    Bounded unless told otherwise. Elements travel with the plan, so more can be added while a job is driven by hand.
    """

    def __init__(self, *splits, bounded=True):
        self.splits = [list(split) for split in splits] or [[]]
        self.bounded = bounded
        self.ended = set()  # of an unbounded source: splits that end all the same

    def __getstate__(self):
        return {"splits": [[] for _ in self.splits], "bounded": self.bounded, "ended": self.ended}

    def add(self, *elements, split=0):
        """More elements for a job that runs in this process."""
        self.splits[split].extend(elements)

    def get_boundedness(self):
        return Boundedness.BOUNDED if self.bounded else Boundedness.CONTINUOUS_UNBOUNDED

    def create_enumerator(self, parallelism):
        return _ScriptEnumerator(self)

    def create_reader(self):
        return _ScriptReader()

    def initial_offset(self, split):
        return 0


@dataclass(frozen=True)
class ScriptSplit(SourceSplit):
    elements: list = field(default_factory=list, compare=False)


class _ScriptEnumerator(SplitEnumerator):
    def __init__(self, source):
        self.source = source

    def discover_splits(self):
        return [ScriptSplit(str(index)) for index in range(len(self.source.splits))]

    def _elements(self, split):
        return self.source.splits[int(split.split_id)]

    def latest_offset(self, split, start_offset, max_records):
        return min(len(self._elements(split)), start_offset + max_records)

    def is_finished(self, split, offset):
        ends = self.source.bounded or int(split.split_id) in self.source.ended
        return ends and offset >= len(self._elements(split))

    def prepare(self, split, start_offset, end_offset):
        return replace(split, elements=self._elements(split)[start_offset:end_offset])


class _ScriptReader(SourceReader):
    def read(self, split, start_offset, end_offset):
        for element in split.elements:
            if isinstance(element, Wm):
                yield element.timestamp
            elif element == IDLE:
                yield True
            elif isinstance(element, At):
                yield [element.value], [element.timestamp]
            else:
                yield [element], None


def script(env, *splits, bounded=True, name="Script"):
    """A stream with exactly these elements, timestamps and watermarks; one split a list."""
    return env.from_source(Script(*splits, bounded=bounded), WatermarkStrategy.no_watermarks(), name)


def collected(*sinks):
    """What the CollectSinks have got since the last call."""
    return [record for sink in sinks for _ in range(sink.records.qsize()) for record in sink.records.get_nowait()]


def assert_no_engine_in(text):
    """No frame of ours, nothing of Spark or the JVM."""
    for foreign in (
        "penstock/runtime",
        "penstock/spark",
        "pyspark",
        "py4j",
        "java",
        "scala",
        "org.apache",
        "Caused by",
    ):
        assert foreign not in text, foreign
