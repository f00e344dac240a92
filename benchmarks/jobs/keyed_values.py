"""Keyed state of any size, and batches of a given number of records: for measuring what state costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.common import Types, WatermarkStrategy
from penstock.core.source import Boundedness, Source, SourceReader, SourceSplit, SplitEnumerator
from penstock.datastream import KeyedProcessFunction, RuntimeContext
from penstock.datastream.connectors import DiscardingSink
from penstock.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.datastream import StreamExecutionEnvironment

SPLITS = 2
SCATTER = 2_654_435_761
_CHUNK = 10_000


class Gate:
    """How many records the driver lets through, for each split."""

    opened: dict[str, int] = {}  # noqa: RUF012 - one for the process: the driver's


class GatedSource(Source):
    """Numbers, as many as the gate of that name is open for. Never ends."""

    def __init__(self, gate: str) -> None:
        self._gate = gate

    def get_boundedness(self) -> Boundedness:
        """Unbounded."""
        return Boundedness.CONTINUOUS_UNBOUNDED

    def create_enumerator(self, parallelism: int) -> SplitEnumerator:
        """Lives on the driver."""
        return _GateKeeper(self._gate)

    def create_reader(self) -> SourceReader:
        """Lives in the tasks."""
        return _Numbers()

    def initial_offset(self, split: SourceSplit) -> int:
        """From the beginning."""
        return 0


class _GateKeeper(SplitEnumerator):
    def __init__(self, gate: str) -> None:
        self._gate = gate
        self._splits = [SourceSplit(str(index)) for index in range(SPLITS)]

    def discover_splits(self) -> list[SourceSplit]:
        return self._splits

    def latest_offset(self, split: SourceSplit, start_offset: int, max_records: int) -> int:
        return max(start_offset, min(Gate.opened.get(self._gate, 0), start_offset + max_records))

    def is_finished(self, split: SourceSplit, offset: int) -> bool:
        return False


class _Numbers(SourceReader):
    def read(self, split: SourceSplit, start_offset: int, end_offset: int) -> Iterator[tuple[list[int], None]]:
        index = int(split.split_id)
        for low in range(start_offset, end_offset, _CHUNK):
            yield [SPLITS * n + index for n in range(low, min(low + _CHUNK, end_offset))], None


class Remember(KeyedProcessFunction):
    """Keeps 100 bytes for every key; complains if a key that was there before is gone."""

    def __init__(self, keys: int) -> None:
        self._keys = keys

    def open(self, runtime_context: RuntimeContext) -> None:
        """Declare the state."""
        self.state = runtime_context.get_state(ValueStateDescriptor("payload", Types.STRING()))

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> None:
        """The first record of each key fills it, later ones check and change it."""
        known = self.state.value()
        if (known is None) != (value < self._keys):
            raise ValueError(f"record {value} found {known!r} under its key {ctx.get_current_key()}")
        self.state.update(payload(value))


class Collect(KeyedProcessFunction):
    """Keeps 100 bytes for every record, all of them in one list or map."""

    def __init__(self, kind: str, count: int) -> None:
        self._kind = kind
        self._count = count

    def open(self, runtime_context: RuntimeContext) -> None:
        """Declare the state."""
        if self._kind == "list":
            self.elements = runtime_context.get_list_state(ListStateDescriptor("elements", Types.STRING()))
        else:
            self.entries = runtime_context.get_map_state(MapStateDescriptor("entries", Types.LONG(), Types.STRING()))

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> None:
        """A list grows with every record; a map has its size after some, later ones replace what is there."""
        if self._kind == "list":
            self.elements.add(payload(value))
        else:
            self.entries.put(value if value < self._count else value * SCATTER % self._count, payload(value))


def payload(number: int) -> str:
    """100 characters, different for every record."""
    return f"{number * SCATTER % 10**12:0100d}"


def build(env: StreamExecutionEnvironment, gate: str, keys: int) -> Any:
    """The first ``keys`` records have a key each, the following ones are scattered over these keys."""
    numbers = env.from_source(GatedSource(gate), WatermarkStrategy.no_watermarks(), "numbers", Types.LONG())
    numbers.uid("numbers").key_by(lambda n: n if n < keys else n * SCATTER % keys, key_type=Types.LONG()).process(
        Remember(keys)
    ).uid("remember").sink_to(DiscardingSink()).uid("discarded")
    return env


def build_collection(env: StreamExecutionEnvironment, gate: str, kind: str, count: int) -> Any:
    """All records have the same key, whose list or map has so many elements after as many records."""
    numbers = env.from_source(GatedSource(gate), WatermarkStrategy.no_watermarks(), "numbers", Types.LONG())
    numbers.uid("numbers").key_by(lambda n: 0, key_type=Types.LONG()).process(Collect(kind, count)).uid(
        "collect"
    ).sink_to(DiscardingSink()).uid("discarded")
    return env
