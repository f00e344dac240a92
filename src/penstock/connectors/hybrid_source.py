"""Reads sources one after another: first the history, then live data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from penstock.common.errors import InvalidProgramError, shorten
from penstock.core.source import Boundedness, Source, SourceReader, SourceSplit, SplitEnumerator

if TYPE_CHECKING:
    from penstock.core.functions import RuntimeContext

__all__ = ["HybridSource", "HybridSourceBuilder"]

T = TypeVar("T")


@dataclass(frozen=True)
class _HybridSplit(SourceSplit):
    """A split of one of the sources."""

    phase: int
    inner: SourceSplit


class HybridSource(Source[T], Generic[T]):
    """Reads a source to its end, then the next one. All sources except the last must be bounded.

    >>> from penstock.common import WatermarkStrategy
    >>> from penstock.datastream import StreamExecutionEnvironment
    >>> from penstock.connectors import NumberSequenceSource
    >>> from penstock.testing import MiniCluster
    >>> env = StreamExecutionEnvironment(executor=MiniCluster())
    >>> history, live = NumberSequenceSource(1, 3), NumberSequenceSource(4, 6)
    >>> both = HybridSource.builder(history).add_source(live).build()
    >>> numbers = env.from_source(both, WatermarkStrategy.no_watermarks(), "both").set_parallelism(1)
    >>> list(numbers.execute_and_collect())
    [1, 2, 3, 4, 5, 6]

    ``HybridSource(history, live)`` is equivalent to the builder.
    """

    def __init__(self, *sources: Source[T]) -> None:
        if not sources:
            raise InvalidProgramError("a hybrid source needs sources: HybridSource(history, live)")
        builder = HybridSourceBuilder()
        for source in sources:
            builder.add_source(source)
        self._sources = list(sources)
        self.makes_watermarks = any(source.makes_watermarks for source in sources)

    @staticmethod
    def builder(first_source: Source) -> HybridSourceBuilder:
        """Create a builder with the first source."""
        return HybridSourceBuilder().add_source(first_source)

    def get_boundedness(self) -> Boundedness:
        return self._sources[-1].get_boundedness()

    @property
    def may_end(self) -> bool:
        return self._sources[-1].may_end

    def get_produced_type(self) -> Any:
        """Return the type of the first source. All sources must have the same type."""
        produced = getattr(self._sources[0], "get_produced_type", None)
        return None if produced is None else produced()

    def create_enumerator(self, parallelism: int) -> SplitEnumerator:
        return _HybridEnumerator([source.create_enumerator(parallelism) for source in self._sources])

    def create_reader(self) -> SourceReader:
        return _HybridReader(self._sources)

    def initial_offset(self, split: SourceSplit) -> Any:
        assert isinstance(split, _HybridSplit)
        return self._sources[split.phase].initial_offset(split.inner)


class HybridSourceBuilder:
    """Collects the sources in order."""

    def __init__(self) -> None:
        self._sources: list[Source] = []

    def add_source(self, source: Source) -> Self:
        """Add the next source. All sources before it must be bounded."""
        if not isinstance(source, Source):
            raise InvalidProgramError(f"a hybrid source consists of sources, got {shorten(source)}")
        if self._sources and not self._sources[-1].is_bounded:
            number = len(self._sources)
            raise InvalidProgramError(f"nothing can follow source {number} of a hybrid source: it is not bounded")
        self._sources.append(source)
        return self

    def build(self) -> HybridSource[Any]:
        """Build the source."""
        return HybridSource(*self._sources)


class _HybridEnumerator(SplitEnumerator):
    """Uses the enumerator of one source at a time. It switches to the next when all splits are finished."""

    def __init__(self, enumerators: Sequence[SplitEnumerator]) -> None:
        self._enumerators = enumerators
        self._phase = 0
        self._started: set[int] = set()
        self._finished: set[str] = set()
        self._listed: dict[str, _HybridSplit] = {}
        self._directory: str | None = None

    @property
    def reads_in_order(self) -> bool:
        return self._enumerators[self._phase].reads_in_order

    def use_clock(self, clock: Callable[[], int]) -> None:
        for enumerator in self._enumerators:
            enumerator.use_clock(clock)

    def use_steps(self, wake: Callable[[], None]) -> None:
        """Tell each source that many offsets may be requested between two checkpoints."""
        for enumerator in self._enumerators:
            enumerator.use_steps(wake)

    def use_directory(self, directory: str) -> None:
        self._directory = directory

    def _enumerator(self, phase: int) -> SplitEnumerator:
        enumerator = self._enumerators[phase]
        if phase not in self._started:  # it may start much later, or never
            self._started.add(phase)
            if self._directory is not None:
                enumerator.use_directory(f"{self._directory}/{phase}")
            enumerator.start()
        return enumerator

    def restore(self, finished: Mapping[str, bool]) -> None:
        phases = _by_phase(finished)
        self._phase = max(phases)
        for phase, splits in phases.items():
            self._enumerator(phase).restore(splits)
        self._finished = {split_id for split_id, is_finished in finished.items() if is_finished}

    def discover_splits(self) -> Sequence[SourceSplit]:
        while True:
            enumerator = self._enumerator(self._phase)
            current = [_wrap(self._phase, split) for split in enumerator.discover_splits()]
            self._listed.update((split.split_id, split) for split in current)
            over = all(split.split_id in self._finished for split in current) and not enumerator.has_more_splits()
            if not over or self._phase == len(self._enumerators) - 1:
                return list(self._listed.values())
            self._phase += 1

    def has_more_splits(self) -> bool:
        return self._phase < len(self._enumerators) - 1 or self._enumerator(self._phase).has_more_splits()

    def forget(self, split_ids: Sequence[str]) -> bool:
        """Forget splits only if all sources can. A history is often too long to be named in each batch."""
        remembered = [
            self._enumerator(phase).forget(list(inner)) for phase, inner in _by_phase(dict.fromkeys(split_ids)).items()
        ]
        if not all(remembered):
            return False
        for split_id in split_ids:
            self._listed.pop(split_id, None)
            self._finished.discard(split_id)
        return True

    def remembered(self) -> Sequence[str]:
        return [
            f"{phase}/{split_id}"
            for phase in sorted(self._started)
            for split_id in self._enumerators[phase].remembered()
        ]

    def subtask_for(self, split_id: str, parallelism: int) -> int | None:
        phase, inner = _parse(split_id)
        return self._enumerator(phase).subtask_for(inner, parallelism)

    def restore_split(self, split_id: str) -> SourceSplit:
        phase, inner = _parse(split_id)
        enumerator = self._enumerator(phase)
        known = {split.split_id: split for split in enumerator.discover_splits()}
        return _wrap(phase, known[inner] if inner in known else enumerator.restore_split(inner))

    # -- calls about a split go to its own source ---------------------------------------------------------------

    def starting_offset(self, split: SourceSplit, *, fresh: bool) -> Any | None:
        assert isinstance(split, _HybridSplit)
        return self._enumerator(split.phase).starting_offset(split.inner, fresh=fresh)

    def latest_offset(self, split: SourceSplit, start_offset: Any, max_records: int) -> Any | None:
        assert isinstance(split, _HybridSplit)
        return self._enumerator(split.phase).latest_offset(split.inner, start_offset, max_records)

    def record_count(self, split: SourceSplit, start_offset: Any, end_offset: Any) -> int | None:
        assert isinstance(split, _HybridSplit)
        return self._enumerator(split.phase).record_count(split.inner, start_offset, end_offset)

    def is_finished(self, split: SourceSplit, offset: Any) -> bool:
        assert isinstance(split, _HybridSplit)
        finished = self._enumerator(split.phase).is_finished(split.inner, offset)
        if finished:
            self._finished.add(split.split_id)
        return finished

    def prepare(self, split: SourceSplit, start_offset: Any, end_offset: Any) -> SourceSplit:
        assert isinstance(split, _HybridSplit)
        return _wrap(split.phase, self._enumerator(split.phase).prepare(split.inner, start_offset, end_offset))

    def commit(self, offsets: Mapping[str, Any]) -> None:
        for phase, committed in _by_phase(offsets).items():
            if phase in self._started:
                self._enumerators[phase].commit(committed)

    def close(self) -> None:
        with ExitStack() as stack:
            for phase in sorted(self._started):
                stack.callback(self._enumerators[phase].close)


class _HybridReader(SourceReader):
    """One reader for each source with assigned ranges."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self._sources = sources
        self._readers: dict[int, SourceReader] = {}

    def open(self, runtime_context: RuntimeContext) -> None:
        self._context = runtime_context

    def read(self, split: SourceSplit, start_offset: Any, end_offset: Any) -> Iterator[Any]:
        assert isinstance(split, _HybridSplit)
        if split.phase not in self._readers:
            reader = self._readers[split.phase] = self._sources[split.phase].create_reader()
            reader.open(self._context)
        return self._readers[split.phase].read(split.inner, start_offset, end_offset)

    def close(self) -> None:
        with ExitStack() as stack:
            for reader in self._readers.values():
                stack.callback(reader.close)


def _wrap(phase: int, split: SourceSplit) -> _HybridSplit:
    return _HybridSplit(f"{phase}/{split.split_id}", phase, split)


def _by_phase(splits: Mapping[str, Any]) -> dict[int, dict[str, Any]]:
    phases: dict[int, dict[str, Any]] = {}
    for split_id, value in splits.items():
        phase, inner = _parse(split_id)
        phases.setdefault(phase, {})[inner] = value
    return phases


def _parse(split_id: str) -> tuple[int, str]:
    phase, _, inner = split_id.partition("/")
    return int(phase), inner
