"""Partitioners: which subtasks of the next task receive a record (rules 2.1, 5.5).

A partitioner works on a batch. It returns, for each target channel, the records for that channel.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from operator import index
from typing import Any

from penstock.common.errors import InvalidProgramError, KeySelectorError, PenstockError, shorten
from penstock.runtime.records.batch import Timestamps, Values
from penstock.runtime.records.key_groups import key_hashes
from penstock.runtime.records.unhashable_keys import HashableKeys, returns_unhashable

Routed = list[tuple[int, Values, Timestamps]]
_CACHED_KEYS = 1 << 17


class Partitioner:
    """Base of all partitioners: `setup` once, then `route` for every batch."""

    name = "PARTITION"
    broadcast = False

    def __init__(self) -> None:
        self.channels = 1
        self.sender = 0

    def setup(self, sender: int, senders: int, channels: int, max_parallelism: int, target: str) -> None:
        """Set the sender's index, the number of senders and receivers, and the receivers' key groups and name."""
        self.sender = sender
        self.channels = channels

    def begin_batch(self, batch: int) -> None:
        """Begin a batch. Choices depend only on its number, so that a retry makes the same ones."""

    def route(self, values: Values, timestamps: Timestamps) -> Routed:
        """Split a batch by target channel, and keep the order."""
        raise NotImplementedError


def _scatter(values: Values, timestamps: Timestamps, targets: list[int], channels: int) -> Routed:
    out: list[Values] = [[] for _ in range(channels)]
    for value, target in zip(values, targets, strict=True):
        out[target].append(value)
    if timestamps is None:
        return [(channel, part, None) for channel, part in enumerate(out) if part]
    stamps: list[list[Any]] = [[] for _ in range(channels)]
    for stamp, target in zip(timestamps, targets, strict=True):
        stamps[target].append(stamp)
    return [(channel, part, stamps[channel]) for channel, part in enumerate(out) if part]


class ForwardPartitioner(Partitioner):
    """Sends subtask i to subtask i. Both sides have the same parallelism."""

    name = "FORWARD"

    def route(self, values: Values, timestamps: Timestamps) -> Routed:
        """Send all records to the one receiver."""
        return [(self.sender, values, timestamps)]


class GlobalPartitioner(Partitioner):
    """Sends all records to the first subtask."""

    name = "GLOBAL"

    def route(self, values: Values, timestamps: Timestamps) -> Routed:
        """Send all records to subtask 0."""
        return [(0, values, timestamps)]


class BroadcastPartitioner(Partitioner):
    """Sends all records to every subtask."""

    name = "BROADCAST"
    broadcast = True

    def route(self, values: Values, timestamps: Timestamps) -> Routed:
        """Send a copy to each receiver."""
        return [(channel, values, timestamps) for channel in range(self.channels)]


class RebalancePartitioner(Partitioner):
    """Sends records round robin to all receivers."""

    name = "REBALANCE"

    def setup(self, sender: int, senders: int, channels: int, max_parallelism: int, target: str) -> None:
        """Let senders start at different receivers, so that even a few records are spread."""
        super().setup(sender, senders, channels, max_parallelism, target)
        self._next = sender % channels
        self._targets = list(range(channels))

    def begin_batch(self, batch: int) -> None:
        """Start each batch one receiver further, so that small batches are spread, too."""
        self._next = (self.sender + batch - 1) % len(self._targets)  # the first batch is number 1

    def route(self, values: Values, timestamps: Timestamps) -> Routed:
        """Send every n-th record to the same receiver, by slices."""
        targets, count = self._targets, len(self._targets)
        routed: Routed = []
        for offset in range(count):
            part = values[offset::count]
            if part:
                stamps = None if timestamps is None else timestamps[offset::count]
                routed.append((targets[(self._next + offset) % count], part, stamps))
        self._next = (self._next + len(values)) % count
        return routed


def rescale_targets(sender: int, senders: int, receivers: int) -> list[int]:
    """Return the receivers of a sender: contiguous portions with the same boundaries as in Flink.

    >>> [rescale_targets(sender, 2, 5) for sender in range(2)]
    [[0, 1, 2], [3, 4]]
    >>> [rescale_targets(sender, 5, 2) for sender in range(5)]
    [[0], [0], [1], [1], [1]]
    """
    if receivers > senders:
        return [receiver for receiver in range(receivers) if receiver * senders // receivers == sender]
    return [((sender + 1) * receivers - 1) // senders]


class RescalePartitioner(RebalancePartitioner):
    """Sends records round robin to the receivers of this sender."""

    name = "RESCALE"

    def setup(self, sender: int, senders: int, channels: int, max_parallelism: int, target: str) -> None:
        """Assign receivers to senders in contiguous, even portions."""
        super().setup(sender, senders, channels, max_parallelism, target)
        self._targets = rescale_targets(sender, senders, channels)
        self._next = 0


class ShufflePartitioner(Partitioner):
    """Sends each record to a uniformly random receiver. A replayed batch makes the same choices."""

    name = "SHUFFLE"

    def setup(self, sender: int, senders: int, channels: int, max_parallelism: int, target: str) -> None:
        """Create the random generator."""
        super().setup(sender, senders, channels, max_parallelism, target)
        self._random = random.Random(sender)  # noqa: S311 - not for security

    def begin_batch(self, batch: int) -> None:
        """Seed the generator with sender and batch, so that a replay makes the same choices."""
        self._random.seed(self.sender * 7919 + batch)

    def route(self, values: Values, timestamps: Timestamps) -> Routed:
        """Draw once per record."""
        channels = self.channels
        targets = [int(draw * channels) for draw in map(_draw(self._random), values)]
        return _scatter(values, timestamps, targets, channels)


def _draw(generator: random.Random) -> Callable[[Any], float]:
    draw = generator.random
    return lambda _: draw()


class KeyGroupPartitioner(Partitioner):
    """Sends records by key: key -> key group -> subtask (rule 3.8)."""

    name = "HASH"

    def __init__(self, key_selector: Callable[[Any], Any], key_type: dict[str, Any] | None = None) -> None:
        super().__init__()
        self.key_selector = key_selector
        self.key_type = key_type
        """The description of the declared key type, if any."""

    def setup(self, sender: int, senders: int, channels: int, max_parallelism: int, target: str) -> None:
        """Start with an empty cache of key -> channel."""
        super().setup(sender, senders, channels, max_parallelism, target)
        self._max_parallelism = max_parallelism
        self._target = target
        self._channel_of: dict[Any, int] = {}
        self._select: Callable[[Any], Any] | None = None

    def route(self, values: Values, timestamps: Timestamps) -> Routed:
        """Call the key selector once and look up one dict entry per record."""
        channels = self.channels
        if channels == 1:
            return [(0, values, timestamps)]
        if self._select is None:
            unhashable = returns_unhashable(self.key_selector, values)
            self._select = HashableKeys(self.key_selector) if unhashable else self.key_selector
        try:
            chosen = self._channels_of(list(map(self._select, values)))
        except Exception as error:
            raise self._error_of_a_record(error, values) from error
        out: list[Values] = [[] for _ in range(channels)]
        if timestamps is None:
            for value, channel in zip(values, chosen, strict=True):
                out[channel].append(value)
            return [(channel, part, None) for channel, part in enumerate(out) if part]
        stamps: list[list[Any]] = [[] for _ in range(channels)]
        for value, stamp, channel in zip(values, timestamps, chosen, strict=True):
            out[channel].append(value)
            stamps[channel].append(stamp)
        return [(channel, part, stamps[channel]) for channel, part in enumerate(out) if part]

    def _channels_of(self, keys: list[Any]) -> list[int]:
        known = self._channel_of
        found: list[Any] = list(map(known.get, keys))
        if None not in found:
            return found
        new: list[Any] | dict[Any, None] = [key for key, channel in zip(keys, found, strict=True) if channel is None]
        if len(known) + len(new) > _CACHED_KEYS:
            known.clear()
            new = keys
        new = dict.fromkeys(new)
        groups, channels = self._max_parallelism, self.channels
        known.update(zip(new, [code % groups * channels // groups for code in key_hashes(new)], strict=True))
        return [known[key] for key in keys]

    def _error_of_a_record(self, error: Exception, values: Values) -> PenstockError:
        """Find the record of an error by processing the records again, one by one."""
        assert self._select is not None
        for value in values:
            try:
                self._channels_of([self._select(value)])
            except Exception as again:
                return key_error(again, value, self._target)
        return key_error(error, _Unknown(), self._target)


class _Unknown:
    """Represents a record that cannot be named."""

    def __repr__(self) -> str:
        return "(unknown: the key selector did not fail again)"


def key_error(error: Exception, value: Any, target: str) -> PenstockError:
    """Return the error for a key selector that failed, or returned something that cannot be a key."""
    if isinstance(error, KeySelectorError) and error.operator_name is None:
        return KeySelectorError(str(error), operator_name=target, record=value)
    if isinstance(error, PenstockError):
        return error
    if isinstance(error, TypeError) and "unhashable" in str(error):
        return KeySelectorError(
            f"the key selector before '{target}' returned a value that cannot be a key ({error}) for record "
            f"{shorten(value)}: return a hashable value such as a string, number, tuple or frozen dataclass"
        )
    return KeySelectorError(
        f"the key selector before '{target}' failed for record {shorten(value)}: {type(error).__name__}: {error}"
    )


class CustomPartitioner(Partitioner):
    """Sends records by the user's own function of key and number of receivers."""

    name = "CUSTOM"

    def __init__(self, partition: Callable[[Any, int], int], key_selector: Callable[[Any], Any]) -> None:
        super().__init__()
        self._partition = partition
        self._key_selector = key_selector

    def setup(self, sender: int, senders: int, channels: int, max_parallelism: int, target: str) -> None:
        """Store the target's name for messages."""
        super().setup(sender, senders, channels, max_parallelism, target)
        self._target = target

    def route(self, values: Values, timestamps: Timestamps) -> Routed:
        """Call the user's function for every record."""
        channels = self.channels
        targets = []
        for value in values:
            try:
                target = self._partition(self._key_selector(value), channels)
            except Exception as error:
                raise InvalidProgramError(
                    f"the custom partitioner before '{self._target}' failed for record {shorten(value)}: "
                    f"{type(error).__name__}: {error}"
                ) from error
            targets.append(self._checked(target, value))
        return _scatter(values, timestamps, targets, channels)

    def _checked(self, target: Any, value: Any) -> int:
        with suppress(TypeError):
            channel = index(target)
            if 0 <= channel < self.channels:
                return channel
        raise InvalidProgramError(
            f"the custom partitioner before '{self._target}' returned {shorten(target)} for record {shorten(value)}, "
            f"but there are channels 0 to {self.channels - 1}"
        )
