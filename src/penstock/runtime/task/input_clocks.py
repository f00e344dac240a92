"""The clocks of a task: from the splits of a source subtask to its channel, from channels to inputs, to the task.

A channel is a subtask that sends to this task. The watermarks of a task count as they are. A source subtask has no task
that combines its splits, so their clocks are combined here, and the driver tells which splits there are. The valve of
an input combines its channels, and an operator with two inputs combines the inputs.

Every method returns what the task must do, in this order: an int is the task's new event time; a bool says that all of
its input has become idle or active.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from penstock.common.watermark import MAX_WATERMARK
from penstock.runtime.exchange.combined_watermark import CombinedWatermark, PartialWatermark
from penstock.runtime.exchange.frames import BatchHeader, SplitStatus
from penstock.runtime.exchange.valve import ChannelClock, WatermarkValve
from penstock.runtime.plan.job_vertex import JobEdge

Channel = tuple[int, str]
"""The number of the edge, and the sending subtask."""
Origin = tuple[int, str]
"""The number of the edge, and the origin of its frames: a split or a sending subtask."""
Events = list[int | bool]

_SILENT = "-"


@dataclass(slots=True)
class _Input(PartialWatermark):
    """One input of the operator. Its clock is that of a valve."""

    valve: WatermarkValve = field(default_factory=WatermarkValve)


class InputClocks:
    """The event time of one task and its inputs.

    :param united: whether the inputs of the operator share one valve, as streams of a union do
    """

    def __init__(self, edges: dict[int, JobEdge], subtask: int, *, united: bool = False) -> None:
        self._edges = edges.values()
        self._subtask = subtask
        self._task: CombinedWatermark[_Input] = CombinedWatermark()
        self._input_of: dict[int, _Input] = {}
        for edge in self._edges:
            self._input_of[edge.id] = self._task.parts.setdefault(0 if united else edge.input_index, _Input())
        self._sources: dict[Channel, CombinedWatermark[PartialWatermark]] = {}
        self._channel_of: dict[Origin, Channel] = {}
        self._saved: dict[Origin, tuple[int, bool]] | None = None

    @property
    def event_time(self) -> int:
        """The task's watermark."""
        return self._task.watermark

    # -- events between records ---------------------------------------------------------------------------------

    def watermark(self, edge: int, origin: str, watermark: int) -> Events:
        """Handle a watermark of a split or task."""
        channel = self._channel_of.get((edge, origin))
        if channel is None:
            return self._channel_watermark((edge, origin), watermark)
        self._sources[channel].parts[origin].advance(watermark)
        return self._combine(channel)

    def status(self, edge: int, origin: str, *, idle: bool) -> Events:
        """Handle a split or task that becomes idle or active."""
        channel = self._channel_of.get((edge, origin))
        if channel is None:
            return self._channel_status((edge, origin), idle=idle)
        self._sources[channel].parts[origin].idle = idle
        woken = [] if idle else self._channel_status(channel, idle=False)
        return woken + self._combine(channel)

    def record(self, edge: int, origin: str) -> None:
        """Mark the split of a record as active. The channel becomes active when its event time advances."""
        channel = self._channel_of.get((edge, origin))
        if channel is not None:
            self._sources[channel].parts[origin].idle = False

    # -- split states from the driver ---------------------------------------------------------------------------

    def begin_batch(self, header: BatchHeader) -> Events:
        """Set the channels to wait for. Splits read in this batch are active from its beginning."""
        if self._saved is not None:
            self._restore_saved(header, self._saved)
            self._saved = None
        for edge in self._edges:
            if edge.source not in header.splits:
                for sender in edge.senders_to(self._subtask):
                    self._input_of[edge.id].valve.expect((edge.id, str(sender)))
                continue
            for name, status in self._own_splits(edge, header):
                split = self._expect_split(edge.id, name, status)
                if status.idle is False:
                    split.idle = False
        events: Events = []
        for part in self._task.parts.values():
            if not part.valve.channels:
                part.valve.idle = True  # no split sends to this task (yet): do not wait for this input
            events += self._update(part, None)
        return events

    def end_batch(self, header: BatchHeader) -> Events:
        """Handle idle and finished splits after the records of the batch."""
        events: Events = []
        for edge in self._edges:
            if edge.source not in header.splits:
                continue
            ended = edge.source in header.finished_sources
            own = self._own_splits(edge, header)
            gone = []
            for name, status in own:
                split = self._expect_split(edge.id, name, status)
                if status.finished and ended:
                    split.advance(MAX_WATERMARK)
                elif status.finished:  # only the end of the whole source ends event time: other splits may follow
                    gone.append(name)
                elif status.idle is not None:
                    split.idle = status.idle
            for channel in dict.fromkeys(self._channel_of[edge.id, name] for name, _ in own):
                events += self._combine(channel)
            for name in gone:
                events += self._forget((edge.id, name))
            if ended and not own:
                events += self._silent_edge_finished(edge)
        return events

    def _own_splits(self, edge: JobEdge, header: BatchHeader) -> list[tuple[str, SplitStatus]]:
        senders = set(edge.senders_to(self._subtask))
        return [(name, status) for name, status in header.splits[edge.source].items() if status.subtask in senders]

    def _expect_split(self, edge: int, name: str, status: SplitStatus) -> PartialWatermark:
        channel = self._channel_of.setdefault((edge, name), (edge, str(status.subtask)))
        source = self._sources.get(channel)
        if source is None:
            source = self._sources[channel] = CombinedWatermark()
            self._input_of[edge].valve.expect(channel)
        return source.parts.setdefault(name, PartialWatermark())

    def _forget(self, split: Origin) -> Events:
        """Remove a finished split. Event time does not wait for a channel without splits."""
        channel = self._channel_of.pop(split)
        source = self._sources[channel]
        del source.parts[split[1]]
        if source.parts:
            return self._combine(channel)
        del self._sources[channel]
        part = self._input_of[channel[0]]
        return self._update(part, part.valve.forget(channel))

    def _silent_edge_finished(self, edge: JobEdge) -> Events:
        """End event time for a finished source without splits for this task (any more)."""
        part = self._input_of[edge.id]
        part.valve.expect((edge.id, _SILENT))
        woken = self._update(part, None)  # the watermark of an idle task does not count
        return woken + self._channel_watermark((edge.id, _SILENT), MAX_WATERMARK)

    # -- from splits to channels to inputs to the task ----------------------------------------------------------

    def _combine(self, channel: Channel) -> Events:
        source = self._sources[channel]
        events: Events = []
        if source.update():
            events += self._channel_status(channel, idle=False)
            events += self._channel_watermark(channel, source.watermark)
        if source.all_idle:
            events += self._channel_status(channel, idle=True)
        return events

    def _channel_watermark(self, channel: Channel, watermark: int) -> Events:
        part = self._input_of[channel[0]]
        return self._update(part, part.valve.input_watermark(channel, watermark))

    def _channel_status(self, channel: Channel, *, idle: bool) -> Events:
        part = self._input_of[channel[0]]
        return self._update(part, part.valve.input_status(channel, idle=idle))

    def _update(self, part: _Input, advanced: int | None) -> Events:
        """Return the events that a change of an input's valve causes for the task."""
        task = self._task
        was_idle = task.all_idle
        events: Events = []
        if advanced is not None:
            part.advance(advanced)
            if task.update():
                events.append(task.watermark)
        part.idle = part.valve.idle
        if task.update():
            events.append(task.watermark)
        if task.all_idle is not was_idle:
            events.append(task.all_idle)
        return events

    # -- checkpoints --------------------------------------------------------------------------------------------

    def origins(self, edge: int) -> dict[str, PartialWatermark | ChannelClock]:
        """The clocks of all splits or tasks that send records over an edge."""
        found: dict[str, PartialWatermark | ChannelClock] = {}
        for channel, clock in self._input_of[edge].valve.channels.items():
            if channel[0] == edge:
                found.update(self._sources[channel].parts if channel in self._sources else {channel[1]: clock})
        return found

    def snapshot(self) -> tuple[Any, ...]:
        """Return a small picklable copy."""
        inputs = {index: (part.watermark, part.idle, part.valve.snapshot()) for index, part in self._task.parts.items()}
        splits = {
            (channel, name): (split.watermark, split.idle)
            for channel, source in self._sources.items()
            for name, split in source.parts.items()
        }
        return (self._task.watermark, self._task.all_idle, inputs, splits)

    def restore(self, snapshot: tuple[Any, ...]) -> None:
        """Continue from a snapshot, or from the event time and the clocks by origin in a savepoint."""
        if len(snapshot) == 3:
            self._task.watermark, self._task.all_idle, clocks = snapshot
            self._saved = {origin: (watermark, idle) for origin, (watermark, idle, *_) in clocks.items()}
            return
        self._task.watermark, self._task.all_idle, inputs, splits = snapshot
        for index, (watermark, idle, valve) in inputs.items():
            part = self._task.parts[index]
            part.watermark, part.idle = watermark, idle
            part.valve.restore(valve)
        for (channel, name), (watermark, idle) in splits.items():
            self._channel_of[channel[0], name] = channel
            source = self._sources.get(channel)
            if source is None:
                reached = self._input_of[channel[0]].valve.channels[channel].watermark
                source = self._sources[channel] = CombinedWatermark(reached)
            source.parts[name] = PartialWatermark(watermark, idle)

    def _restore_saved(self, header: BatchHeader, saved: dict[Origin, tuple[int, bool]]) -> None:
        """Assign the split clocks of a savepoint. Only the first batch tells which subtasks read the splits."""
        for edge in self._edges:
            channels = self._input_of[edge.id].valve.channels
            if edge.source not in header.splits:
                channels.update(
                    {(edge.id, origin): ChannelClock(*saved[its, origin]) for its, origin in saved if its == edge.id}
                )
                continue
            for name, status in self._own_splits(edge, header):
                if (edge.id, name) in saved:
                    split = self._expect_split(edge.id, name, status)
                    split.watermark, split.idle = saved[edge.id, name]
            for channel, source in self._sources.items():
                if channel[0] == edge.id:
                    source.update()
                    channels[channel] = ChannelClock(source.watermark, source.all_idle)
        for part in self._task.parts.values():
            self._derive(part)

    def _derive(self, part: _Input) -> None:
        """Derive the clock of an input from its channels. It is never behind the task's."""
        clocks = part.valve.channels.values()
        active = [clock.watermark for clock in clocks if not clock.idle]
        reached = min(active) if active else max((clock.watermark for clock in clocks), default=self.event_time)
        part.valve.last = part.watermark = max(reached, self.event_time)
        part.valve.idle = part.idle = bool(clocks) and not active
        for clock in clocks:
            clock.aligned = not clock.idle
