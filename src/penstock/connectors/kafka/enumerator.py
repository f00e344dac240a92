"""The driver side of the Kafka source: lists the partitions, and how far each can be read.

Positions are part of the job's checkpoint. Offsets committed to the consumer group are for tools that watch the lag,
and for jobs that start from ``committed_offsets``.
"""

from __future__ import annotations

import contextlib
import re
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from penstock.connectors.kafka.client import (
    LOG,
    KafkaError,
    confluent_kafka,
    connection_settings,
    new_admin,
    new_consumer,
    reason,
)
from penstock.connectors.kafka.offsets import (
    KafkaOffsetsInitializer,
    KafkaTopicPartition,
    Offsets,
    Partitions,
)
from penstock.connectors.kafka.splits import KafkaPartitionSplit, position_of, stop_of
from penstock.core.source import SourceSplit, SplitEnumerator

_FIRST_ANSWER_SECONDS = 30.0
_ANSWER_SECONDS = 5.0
_REFRESH_SECONDS = 0.02  # while idle; a batch takes longer than that
_PROBLEM_PAUSE_SECONDS = 0.5
_CLOSE_SECONDS = 5.0


@dataclass(frozen=True)
class Subscription:
    """A subscription: topics by name, topics by pattern, or partitions."""

    topics: tuple[str, ...] = ()
    pattern: re.Pattern[str] | None = None
    partitions: tuple[KafkaTopicPartition, ...] = ()

    def wants(self, partition: KafkaTopicPartition) -> bool:
        """Whether the subscription includes a partition, if it exists."""
        if self.pattern is not None:
            return self.pattern.fullmatch(partition.topic) is not None
        return partition in self.partitions if self.partitions else partition.topic in self.topics

    def select(self, present: Mapping[str, Sequence[int]]) -> list[KafkaTopicPartition]:
        """Return the subscribed partitions among the existing ones. Raise an error if a named one is missing."""
        if self.pattern is not None:
            names = [name for name in present if self.pattern.fullmatch(name) and not name.startswith("__")]
            return sorted(KafkaTopicPartition(name, number) for name in names for number in present[name])
        missing = [name for name in self.topics if name not in present] + [
            str(one) for one in self.partitions if one.partition not in present.get(one.topic, ())
        ]
        if missing:
            raise KafkaError(f"Kafka has no topic or partition {', '.join(missing)}: create it, or correct the name")
        if self.partitions:
            return sorted(self.partitions)
        return sorted(KafkaTopicPartition(name, number) for name in self.topics for number in present[name])


class KafkaEnumerator(SplitEnumerator):
    """Lists partitions and offsets with requests to the brokers.

    :param discovery_interval_ms: how often to look for new partitions; never if it is not positive
    :param stopping: where partitions end, for a bounded source
    :param keep_restored: whether to keep reading partitions of the checkpoint that are no longer subscribed (True),
        forget them (False), or leave them alone (None): then they count as finished if the source ends
    """

    def __init__(
        self,
        settings: Mapping[str, Any],
        subscription: Subscription,
        starting: KafkaOffsetsInitializer,
        stopping: KafkaOffsetsInitializer | None,
        *,
        discovery_interval_ms: int,
        commit_group_offsets: bool,
        keep_restored: bool | None = None,
    ) -> None:
        self._settings = settings
        self._subscription = subscription
        self._starting = starting
        self._stopping = stopping
        self._discovery_interval = discovery_interval_ms / 1000
        self._commit_group_offsets = commit_group_offsets
        self._keep_restored = keep_restored
        self._splits: dict[str, KafkaPartitionSplit] = {}
        self._restored: list[str] = []
        self._forgotten: dict[str, KafkaPartitionSplit] = {}
        self._first: Offsets = {}
        self._stops: Offsets = {}
        self._ends: dict[str, int] = {}
        self._shorter: set[str] = set()  # partitions that end before an earlier end
        self._next_discovery = 0.0
        self._next_refresh = 0.0
        self._next_search = 0.0
        self._absent: set[str] = set()
        self._admin: Any = None
        self._consumer: Any = None
        self._committer: GroupCommitter | None = None

    def start(self) -> None:
        self._admin = new_admin(connection_settings(self._settings))
        self._consumer = new_consumer(self._settings)
        if self._commit_group_offsets:
            self._committer = GroupCommitter(self._consumer)

    def close(self) -> None:
        if self._committer is not None:
            self._committer.close()
            self._committer = None
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = self._admin = None

    # -- partitions ---------------------------------------------------------------------------------------------

    def discover_splits(self) -> Sequence[SourceSplit]:
        now = time.monotonic()
        looking = self._discovery_interval > 0 or bool(self._restored)
        if not self._splits or (looking and now >= self._next_discovery):
            self._discover(now)
        if now >= self._next_refresh:
            self._refresh(now)
        return [*self._splits.values(), *self._forgotten.values()]

    def restore(self, finished: Mapping[str, bool]) -> None:
        self._restored = [split_id for split_id, done in finished.items() if not done]

    def _discover(self, now: float) -> None:
        self._next_discovery = now + (
            self._discovery_interval if self._discovery_interval > 0 else _PROBLEM_PAUSE_SECONDS
        )
        package = confluent_kafka()
        try:
            metadata = self._admin.list_topics(timeout=_ANSWER_SECONDS if self._splits else _FIRST_ANSWER_SECONDS)
        except package.KafkaException as error:
            if self._splits:
                LOG.warning("cannot look for new partitions: %s", reason(error))
                return
            raise KafkaError(
                f"no answer from Kafka at {self._settings['bootstrap.servers']}: {reason(error)}"
            ) from None
        present = {name: sorted(topic.partitions) for name, topic in metadata.topics.items() if topic.error is None}
        try:
            found = self._subscription.select(present)
        except KafkaError:
            if self._splits:
                LOG.warning("a topic of the source no longer exists")
                return
            raise
        for partition in found:
            split = KafkaPartitionSplit.of(partition)
            if split.split_id not in self._splits:
                self._splits[split.split_id] = split
                self._next_refresh = 0.0
        self._sort_restored(present, broken=metadata.topics.keys() - present.keys())

    def _sort_restored(self, present: Mapping[str, Sequence[int]], broken: Collection[str]) -> None:
        """Handle partitions of the checkpoint that are not subscribed, or that have been deleted: a bounded source must
        not wait for what can never arrive. A topic that exists but is broken is requested again.
        """
        undecided: list[str] = []
        for split_id in self._restored:
            if split_id in self._splits:
                continue
            topic, _, number = split_id.rpartition("-")
            split = KafkaPartitionSplit.of(KafkaTopicPartition(topic, int(number)))
            wanted = self._subscription.wants(split.name)
            if topic in broken and (wanted or self._keep_restored):
                undecided.append(split_id)
            elif self._keep_restored and split.partition in present.get(topic, ()):
                self._splits[split_id] = split
            elif self._keep_restored is not None:
                self._forgotten[split_id] = split
            elif self._stopping is not None:
                what = "no longer exists" if wanted else "is no longer subscribed"
                LOG.warning("partition %s %s: it was not read up to where the job ends", split_id, what)
                self._forgotten[split_id] = split
        self._restored = undecided

    # -- offsets ------------------------------------------------------------------------------------------------

    def starting_offset(self, split: SourceSplit, *, fresh: bool) -> Any:
        """Return the user's position at the first start. A partition that appears later is read from its beginning."""
        assert isinstance(split, KafkaPartitionSplit)
        name = split.name
        if self._stopping is not None and not fresh:
            return [0, 0]  # it did not exist when the job started, and the job ends where the topics ended then
        if name not in self._first:
            wanted = [one.name for one in self._splits.values()] if fresh else [name]
            self._first |= self._starting.resolve(wanted, self) if fresh else self.earliest(wanted)
            if self._stopping is not None:
                self._stops |= self._stopping.resolve_end(wanted, self)
        first = self._first[name]
        stop = max(first, self._stops[name]) if self._stopping is not None else None
        # The end was requested earlier: records since then do not mean that the topic was recreated.
        reached = stop if stop is not None and self._stopping is not None and self._stopping.is_within_reach else first
        self._ends[split.split_id] = max(reached, self._ends.get(split.split_id, first))
        return first if stop is None else [first, stop]

    def latest_offset(self, split: SourceSplit, start_offset: Any, max_records: int) -> Any:
        position, stop = position_of(start_offset), stop_of(start_offset)
        known = self._ends.get(split.split_id)
        if known is not None:
            assert isinstance(split, KafkaPartitionSplit)
            problem = self._problem(split, position, known, stop)
            if problem is not None:
                again = self._reset_offset(split, problem, known)
                # For a bounded source: up to the current end of the partition, or nothing of what arrives now.
                return again if stop is None else [position, position] if again == known else [again, known]
        latest = min(known or 0, position + max_records)
        if stop is not None:
            return [max(position, min(latest, stop)), stop]
        return max(position, latest)

    def _problem(self, split: KafkaPartitionSplit, position: int, end: int, stop: int | None) -> str | None:
        """Return what is wrong: a partition gets shorter only if it was recreated or lost records."""
        if end < position:
            return f"partition {split.split_id} ends at {end}, but was read up to {position}"
        if stop is None or self._stopping is None or end >= stop:
            return None
        if self._stopping.is_within_reach or split.split_id in self._shorter:
            return f"partition {split.split_id} ends at {end}, but had records up to {stop}, where the job ends"
        return None

    def _reset_offset(self, split: KafkaPartitionSplit, problem: str, end: int) -> int:
        """Return where to resume, if the user decided that."""
        problem += ": its topic was recreated"
        reset = self._settings.get("auto.offset.reset")
        self._shorter.discard(split.split_id)
        if reset in ("earliest", "smallest", "beginning"):
            LOG.warning("%s; it is read from its beginning", problem)
            return self.earliest([split.name])[split.name]
        if reset in ("latest", "largest", "end"):
            LOG.warning("%s; it is read from its end", problem)
            return end
        raise KafkaError(
            f"{problem}, or has lost records. Set the property auto.offset.reset to 'earliest' to read what the topic "
            "has now, or to 'latest' to continue with new records"
        )

    def pending_records(self, split_id: str, offset: Any) -> int | None:
        end = self._ends.get(split_id)
        if end is None or offset is None:
            return None
        stop = stop_of(offset)
        return max(0, (end if stop is None else min(end, stop)) - position_of(offset))

    def is_finished(self, split: SourceSplit, offset: Any) -> bool:
        stop = stop_of(offset)
        return split.split_id in self._forgotten or (stop is not None and position_of(offset) >= stop)

    def _refresh(self, now: float) -> None:
        """Update the end offsets of the partitions. If no broker answers, nothing changes."""
        self._next_refresh = now + _REFRESH_SECONDS
        if self._absent and now >= self._next_search:
            self._look_for_absent()
        splits = [split for split in self._splits.values() if split.topic not in self._absent]
        try:
            ends = self._current_ends(splits)
            self._shorter |= {name for name, end in ends.items() if end < self._ends.get(name, 0)}
            self._ends |= ends
        except KafkaError as error:
            if self._look_for_absent():  # the request was wrong: it works without these topics
                self._next_refresh = 0.0
                return
            LOG.warning("%s", error)
            self._next_refresh = time.monotonic() + _PROBLEM_PAUSE_SECONDS

    def _current_ends(self, splits: Sequence[KafkaPartitionSplit]) -> dict[str, int]:
        if not splits:
            return {}
        package = confluent_kafka()
        asked = [package.TopicPartition(split.topic, split.partition, package.OFFSET_END) for split in splits]
        # The consumer sends one request to each broker. An admin client first asks who leads the partitions, every
        # time. Use that for partitions that the consumer does not know yet, or whose leader has changed.
        answers = self._ask(lambda: self._consumer.offsets_for_times(asked, timeout=_ANSWER_SECONDS))
        found = {KafkaTopicPartition(one.topic, one.partition): one.offset for one in answers if one.error is None}
        missing = [split.name for split in splits if found.get(split.name, -1) < 0]
        found |= self._list_offsets(missing, latest=True, seconds=_ANSWER_SECONDS)
        return {str(name): offset for name, offset in found.items()}

    def _look_for_absent(self) -> bool:
        """Find deleted topics: requests with one of them fail. Return whether other topics remain."""
        self._next_search = time.monotonic() + _PROBLEM_PAUSE_SECONDS
        try:
            present = self._admin.list_topics(timeout=_ANSWER_SECONDS).topics
        except confluent_kafka().KafkaException:
            return False
        absent = {split.topic for split in self._splits.values() if split.topic not in present}
        changed = absent != self._absent
        if absent - self._absent:
            LOG.warning("topics of the source no longer exist: %s", ", ".join(sorted(absent)))
        self._absent = absent
        return changed

    # -- lookups for offsets initializers -------------------------------------------------------------------------

    def earliest(self, partitions: Partitions) -> Offsets:
        """Return the first existing offsets."""
        return self._list_offsets(partitions, latest=False, seconds=_FIRST_ANSWER_SECONDS)

    def latest(self, partitions: Partitions) -> Offsets:
        """Return the offsets of the next records."""
        return self._list_offsets(partitions, latest=True, seconds=_FIRST_ANSWER_SECONDS)

    def committed(self, partitions: Partitions) -> Offsets:
        """Return the offsets of the consumer group."""
        asked = [confluent_kafka().TopicPartition(one.topic, one.partition) for one in partitions]
        answers = self._ask(lambda: self._consumer.committed(asked, timeout=_FIRST_ANSWER_SECONDS))
        return {KafkaTopicPartition(one.topic, one.partition): one.offset for one in answers if one.offset >= 0}

    def for_timestamp(self, partitions: Partitions, timestamp: int) -> Offsets:
        """Return the first offsets with at least this timestamp."""
        asked = [confluent_kafka().TopicPartition(one.topic, one.partition, timestamp) for one in partitions]
        answers = self._ask(lambda: self._consumer.offsets_for_times(asked, timeout=_FIRST_ANSWER_SECONDS))
        return {KafkaTopicPartition(one.topic, one.partition): one.offset for one in answers if one.offset >= 0}

    def _ask(self, question: Callable[[], Any]) -> Any:
        try:
            return question()
        except confluent_kafka().KafkaException as error:
            raise KafkaError(f"Kafka did not return offsets: {reason(error)}") from None

    def _list_offsets(self, partitions: Partitions, *, latest: bool, seconds: float) -> Offsets:
        if not partitions:
            return {}
        package = confluent_kafka()
        specification = package.admin.OffsetSpec.latest() if latest else package.admin.OffsetSpec.earliest()
        committed = self._settings.get("isolation.level") == "read_committed"
        level = package.IsolationLevel.READ_COMMITTED if committed else package.IsolationLevel.READ_UNCOMMITTED
        asked = {package.TopicPartition(one.topic, one.partition): specification for one in partitions}
        found: Offsets = {}
        try:
            futures: dict[Any, Future[Any]] = self._admin.list_offsets(
                asked, isolation_level=level, request_timeout=seconds
            )
            for name, future in futures.items():
                found[KafkaTopicPartition(name.topic, name.partition)] = future.result().offset
        except package.KafkaException as error:
            raise KafkaError(f"Kafka did not return offsets: {reason(error)}") from None
        return found

    # -- the consumer group -------------------------------------------------------------------------------------

    def commit(self, offsets: Mapping[str, Any]) -> None:
        if self._committer is not None:
            splits = self._splits
            self._committer.offer(
                {splits[name].name: position_of(at) for name, at in offsets.items() if name in splits}
            )


class GroupCommitter:
    """Commits offsets to the consumer group in its own thread, so that no batch waits."""

    def __init__(self, consumer: Any) -> None:
        self._consumer = consumer
        self._wanted: Offsets = {}
        self._done: Offsets = {}
        self._closing = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="penstock-kafka-group-offsets", daemon=True)
        self._thread.start()

    def offer(self, offsets: Offsets) -> None:
        """Commit these offsets, unless newer ones arrive first."""
        with self._changed:
            self._wanted = offsets
            self._changed.notify()

    def close(self) -> None:
        """Commit the remaining offsets."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join(_CLOSE_SECONDS)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closing or self._wanted != self._done)
                wanted, closing = self._wanted, self._closing
            if wanted != self._done:
                self._commit(wanted)
                self._done = wanted  # also after a failure: the next batch brings newer ones
            if closing:
                return

    def _commit(self, offsets: Offsets) -> None:
        package = confluent_kafka()
        changed = [
            package.TopicPartition(name.topic, name.partition, offset)
            for name, offset in offsets.items()
            if self._done.get(name) != offset
        ]
        with contextlib.suppress(RuntimeError):  # closed in the meantime
            try:
                self._consumer.commit(offsets=changed, asynchronous=False)
            except package.KafkaException as error:
                LOG.warning("offsets were not committed to the consumer group: %s", reason(error))
