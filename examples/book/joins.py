"""Two streams joined: by distance in time, and in windows (ch. 6)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from sensors import MINUTE, at, clock, stamped
from showcase import Showcase

from penstock.common import Time
from penstock.datastream import DataStream, StreamExecutionEnvironment
from penstock.datastream.functions import CoGroupFunction, JoinFunction, ProcessJoinFunction
from penstock.datastream.window import TumblingEventTimeWindows

book = Showcase(__doc__)


class Event(NamedTuple):
    """Something of a key at a time."""

    key: str
    timestamp: int
    what: str


class WithTimes(ProcessJoinFunction):
    """A pair, each with its time. The result has the later of the two timestamps."""

    def process_element(self, left: Event, right: Event, ctx: ProcessJoinFunction.Context) -> Iterator[Any]:
        yield (
            left.key,
            f"{left.what} {clock(ctx.get_left_timestamp())}",
            f"{right.what} {clock(ctx.get_right_timestamp())}",
            clock(ctx.get_timestamp()),
        )


@book.example("E40", "Interval join")
def interval_join(env: StreamExecutionEnvironment) -> DataStream:
    """Events of A with those of B that are at most an hour older or 15 minutes younger; both bounds count.

    The last column is the time of the result.
    """
    a = [Event("x", at(9), "A"), Event("y", at(9, 30), "A")]
    b = [
        Event("x", at(7, 59, 59.999), "B"),  # an hour and a millisecond older
        Event("x", at(8), "B"),
        Event("x", at(9, 15), "B"),
        Event("x", at(9, 15, 0.001), "B"),  # a millisecond too young
        Event("y", at(9), "B"),
        Event("z", at(9), "B"),  # no match: the join is inner
    ]
    return (
        stamped(env, a)
        .key_by("key")
        .interval_join(stamped(env, b, delay=120 * MINUTE).key_by("key"))
        .between(Time.hours(-1), Time.minutes(15))
        .process(WithTimes())
    )


class Pair(JoinFunction):
    """Called for every pair of a key and window."""

    def join(self, first: Event, second: Event) -> tuple[str, str, str]:
        return first.key, first.what, second.what


class OuterJoin(CoGroupFunction):
    """Called once per key and window, with all elements of both sides; one of them may be empty."""

    def co_group(self, first: Iterable[Event], second: Iterable[Event]) -> Iterator[tuple[str, str, str]]:
        left, right = list(first), list(second)
        key = (left or right)[0].key
        for what in [event.what for event in left] or ["-"]:
            for other in [event.what for event in right] or ["-"]:
                yield key, what, other


@book.example("E41", "Window join and co-group")
def window_join(env: StreamExecutionEnvironment) -> dict[str, DataStream]:
    """Events of the same key and the same five seconds. A pair only a second apart misses if a window ends between."""
    a = [Event("x", 1_000, "a1"), Event("x", 2_000, "a2"), Event("x", 4_500, "a3"), Event("y", 6_000, "a4")]
    b = [Event("x", 3_000, "b1"), Event("x", 5_500, "b2"), Event("y", 7_000, "b3"), Event("y", 9_999, "b4")]
    left, right = stamped(env, a), stamped(env, b)
    windows = TumblingEventTimeWindows.of(Time.seconds(5))
    return {
        "join": left.join(right).where("key").equal_to("key").window(windows).apply(Pair()),
        "co_group as an outer join": (
            left.co_group(right).where("key").equal_to("key").window(windows).apply(OuterJoin())
        ),
    }


if __name__ == "__main__":
    raise SystemExit(book.main())
