"""Nexmark's queries q0 to q8, q11 and q12 as DataStream programs.

All types are declared. What SQL says with a join of two streams is said here with connect or with union and a window,
because PyFlink has no joins on DataStreams and must run the same text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from benchmarks.nexmark.generator import auction, bid, is_auction, is_bid, is_person, person
from penstock.common import Duration, Time, Types, WatermarkStrategy
from penstock.common.watermark_strategy import TimestampAssigner
from penstock.datastream import KeyedCoProcessFunction, KeyedProcessFunction, RuntimeContext
from penstock.datastream.connectors.number_seq import NumberSequenceSource
from penstock.datastream.functions import AggregateFunction, ProcessWindowFunction
from penstock.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from penstock.datastream.window import (
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from benchmarks.harness.options import Workload
    from penstock.common.typeinfo import TypeInformation
    from penstock.datastream import DataStream, StreamExecutionEnvironment
    from penstock.datastream.window import WindowAssigner

PERSON = Types.TUPLE([Types.LONG(), *(Types.STRING() for _ in range(5)), Types.LONG()])
AUCTION = Types.TUPLE([Types.LONG(), Types.STRING(), Types.STRING(), *(Types.LONG() for _ in range(6))])
BID = Types.TUPLE([Types.LONG(), Types.LONG(), Types.LONG(), Types.STRING(), Types.STRING(), Types.LONG()])
USER = Types.TUPLE([Types.LONG(), Types.STRING(), Types.LONG()])

Names = tuple[str, str, str]
BidFields = tuple[int, int, int, str, str, int]


def longs(count: int) -> TypeInformation:
    """A tuple of whole numbers. A new type each time: one that PyFlink's job graph has used cannot type state."""
    return Types.TUPLE([Types.LONG() for _ in range(count)])


# -- the streams ------------------------------------------------------------------------------------------------------


class FieldTime(TimestampAssigner):
    """The event carries its time in one of its fields."""

    def __init__(self, field: int) -> None:
        self.field = field

    def extract_timestamp(self, value: tuple[Any, ...], record_timestamp: int) -> int:
        """Milliseconds of event time."""
        return int(value[self.field])


def in_event_time(stream: DataStream, field: int) -> DataStream:
    """Each source split is in order, so no event is waited for."""
    return stream.assign_timestamps_and_watermarks(
        WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(1)).with_timestamp_assigner(FieldTime(field))
    )


def places(env: StreamExecutionEnvironment, load: Workload) -> DataStream:
    """The places of the stream's events.

    The source cuts the sequence into one contiguous part per subtask. Each part gets every n-th event, so that the
    parts advance side by side in event time, as the partitions of a log do.
    """
    splits = load.parallelism
    part = -(-load.records // splits)
    source = NumberSequenceSource(0, part * splits - 1)
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "events", Types.LONG())
    return numbers.map(lambda n: n % part * splits + n // part, output_type=Types.LONG())


def persons(events: DataStream, load: Workload) -> DataStream:
    """(id, name, email, credit card, city, state, time)."""
    rate = load.events_per_second
    return in_event_time(events.filter(is_person).map(lambda n: person(n, rate), output_type=PERSON), 6)


def auctions(events: DataStream, load: Workload) -> DataStream:
    """(id, item, description, initial bid, reserve, time, expires, seller, category)."""
    rate = load.events_per_second
    return in_event_time(events.filter(is_auction).map(lambda n: auction(n, rate), output_type=AUCTION), 5)


def bids(events: DataStream, load: Workload) -> DataStream:
    """(auction, bidder, price, channel, url, time)."""
    rate = load.events_per_second
    return in_event_time(events.filter(is_bid).map(lambda n: bid(n, rate), output_type=BID), 5)


# -- q0 to q2: one record at a time -----------------------------------------------------------------------------------


def build_q0(env: StreamExecutionEnvironment, load: Workload) -> DataStream:
    """Every bid as it is: what the stream itself costs."""
    return bids(places(env, load), load).map(lambda b: b, output_type=BID)


def build_q1(env: StreamExecutionEnvironment, load: Workload) -> DataStream:
    """Every bid, in euros: (auction, bidder, price, time)."""
    euros = Types.TUPLE([Types.LONG(), Types.LONG(), Types.DOUBLE(), Types.LONG()])
    return bids(places(env, load), load).map(lambda b: (b[0], b[1], b[2] * 0.908, b[5]), output_type=euros)


def build_q2(env: StreamExecutionEnvironment, load: Workload) -> DataStream:
    """The bids for some auctions: (auction, price)."""
    chosen = bids(places(env, load), load).filter(lambda b: b[0] % 123 == 0)
    return chosen.map(lambda b: (b[0], b[2]), output_type=longs(2))


# -- q3: a join without end -------------------------------------------------------------------------------------------


class SellersOfItems(KeyedCoProcessFunction):
    """Meets a person with all auctions of theirs, whichever comes first."""

    def open(self, runtime_context: RuntimeContext) -> None:
        """Declare the state: the seller, and the auctions that still wait for them."""
        names = Types.TUPLE([Types.STRING(), Types.STRING(), Types.STRING()])
        self.seller = runtime_context.get_state(ValueStateDescriptor("seller", names))
        self.waiting = runtime_context.get_list_state(ListStateDescriptor("waiting", Types.LONG()))

    def process_element1(
        self, value: tuple[Any, ...], ctx: KeyedCoProcessFunction.Context
    ) -> Iterator[tuple[str, str, str, int]]:
        """An auction."""
        seller: Names | None = self.seller.value()
        if seller is None:
            self.waiting.add(value[0])
        else:
            yield (*seller, value[0])

    def process_element2(
        self, value: tuple[Any, ...], ctx: KeyedCoProcessFunction.Context
    ) -> Iterator[tuple[str, str, str, int]]:
        """A person."""
        seller = value[1], value[4], value[5]
        self.seller.update(seller)
        for number in self.waiting.get() or ():
            yield (*seller, number)
        self.waiting.clear()


def build_q3(env: StreamExecutionEnvironment, load: Workload) -> DataStream:
    """Who sells in category 10 in three states: (name, city, state, auction)."""
    events = places(env, load)
    items = auctions(events, load).filter(lambda a: a[8] == 10)
    sellers = persons(events, load).filter(lambda p: p[5] in {"OR", "ID", "CA"})
    both: Any = items.connect(sellers)
    stream: DataStream = both.key_by(lambda a: a[7], lambda p: p[0], key_type=Types.LONG()).process(
        SellersOfItems(), output_type=Types.TUPLE([Types.STRING(), Types.STRING(), Types.STRING(), Types.LONG()])
    )
    return stream


# -- q4, q6: closed auctions ------------------------------------------------------------------------------------------


class WinningBids(KeyedCoProcessFunction):
    """Emits (auction, category, seller, expires, price) when an auction that got bids closes."""

    def open(self, runtime_context: RuntimeContext) -> None:
        """Declare the state: (expires, begins, category, seller), the best price, bids that came before the auction."""
        number = Types.LONG()
        self.lot = runtime_context.get_state(ValueStateDescriptor("lot", Types.TUPLE([number, number, number, number])))
        self.best = runtime_context.get_state(ValueStateDescriptor("best", number))
        self.early = runtime_context.get_list_state(ListStateDescriptor("early", Types.TUPLE([number, number])))

    def process_element1(self, value: tuple[Any, ...], ctx: KeyedCoProcessFunction.Context) -> None:
        """An auction."""
        begins, expires = value[5], value[6]
        self.lot.update((expires, begins, value[8], value[7]))
        ctx.timer_service().register_event_time_timer(expires)
        for time, price in self.early.get() or ():
            if begins <= time <= expires:
                self.offer(price)
        self.early.clear()

    def process_element2(self, value: BidFields, ctx: KeyedCoProcessFunction.Context) -> None:
        """A bid."""
        time, lot = value[5], self.lot.value()
        if lot is None:
            # Either the auction is on its way or it is closed: when event time has reached the bid, it is closed.
            self.early.add((time, value[2]))
            ctx.timer_service().register_event_time_timer(time)
        elif lot[1] <= time <= lot[0]:
            self.offer(value[2])

    def offer(self, price: int) -> None:
        """Keep the highest."""
        best = self.best.value()
        if best is None or price > best:
            self.best.update(price)

    def on_timer(
        self, timestamp: int, ctx: KeyedCoProcessFunction.OnTimerContext
    ) -> Iterator[tuple[int, int, int, int, int]]:
        """The auction closes, or no one waits for a bid."""
        lot = self.lot.value()
        if lot is None:
            left = [early for early in self.early.get() or () if early[0] > timestamp]
            if left:
                self.early.update(left)
            else:
                self.early.clear()
        elif timestamp == lot[0]:
            best = self.best.value()
            if best is not None:
                yield ctx.get_current_key(), lot[2], lot[3], timestamp, best
            self.lot.clear()
            self.best.clear()


def winning_bids(env: StreamExecutionEnvironment, load: Workload) -> DataStream:
    """(auction, category, seller, expires, price) of every closed auction that got bids."""
    events = places(env, load)
    both: Any = auctions(events, load).connect(bids(events, load))
    stream: DataStream = both.key_by(lambda a: a[0], lambda b: b[0], key_type=Types.LONG()).process(
        WinningBids(), output_type=longs(5)
    )
    return stream


class AverageOfCategory(KeyedProcessFunction):
    """Emits (category, moment, average price so far) for every moment at which an auction of the category closes.

    What closes at the same moment is one update. Closed auctions wait for event time, because a later one may be
    received first.
    """

    def open(self, runtime_context: RuntimeContext) -> None:
        """Declare the state: (count, sum) by moment, and of all moments past."""
        self.moments = runtime_context.get_map_state(
            MapStateDescriptor("moments", Types.LONG(), Types.TUPLE([Types.LONG(), Types.LONG()]))
        )
        self.past = runtime_context.get_state(ValueStateDescriptor("past", Types.TUPLE([Types.LONG(), Types.LONG()])))

    def process_element(self, value: tuple[int, ...], ctx: KeyedProcessFunction.Context) -> None:
        """An auction closed."""
        moment, price = value[3], value[4]
        count, total = self.moments.get(moment) or (0, 0)
        self.moments.put(moment, (count + 1, total + price))
        ctx.timer_service().register_event_time_timer(moment)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[tuple[int, int, float]]:
        """All auctions that closed at this moment are here."""
        count, total = self.moments.get(timestamp) or (0, 0)
        past_count, past_total = self.past.value() or (0, 0)
        count, total = count + past_count, total + past_total
        self.moments.remove(timestamp)
        self.past.update((count, total))
        yield ctx.get_current_key(), timestamp, total / count


def build_q4(env: StreamExecutionEnvironment, load: Workload) -> DataStream:
    """The average selling price by category: (category, moment, average)."""
    return (
        winning_bids(env, load)
        .key_by(lambda closed: closed[1], key_type=Types.LONG())
        .process(AverageOfCategory(), output_type=Types.TUPLE([Types.LONG(), Types.LONG(), Types.DOUBLE()]))
    )


class AverageOfLastTen(KeyedProcessFunction):
    """Emits (seller, auction, average price of the last ten) for every closed auction, in order of closing."""

    def open(self, runtime_context: RuntimeContext) -> None:
        """Declare the state: (auction, price) by moment, and the last ten prices."""
        closed = Types.LIST(Types.TUPLE([Types.LONG(), Types.LONG()]))
        self.moments = runtime_context.get_map_state(MapStateDescriptor("moments", Types.LONG(), closed))
        self.last = runtime_context.get_list_state(ListStateDescriptor("last", Types.LONG()))

    def process_element(self, value: tuple[int, ...], ctx: KeyedProcessFunction.Context) -> None:
        """An auction closed."""
        moment = value[3]
        self.moments.put(moment, [*(self.moments.get(moment) or ()), (value[0], value[4])])
        ctx.timer_service().register_event_time_timer(moment)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[tuple[int, int, float]]:
        """All auctions that closed at this moment are here; among them the number decides."""
        last = list(self.last.get() or ())
        for number, price in sorted(self.moments.get(timestamp) or ()):
            last = [*last[-9:], price]
            yield ctx.get_current_key(), number, sum(last) / len(last)
        self.moments.remove(timestamp)
        self.last.update(last)


def build_q6(env: StreamExecutionEnvironment, load: Workload) -> DataStream:
    """The average selling price of each seller's last ten closed auctions: (seller, auction, average)."""
    return (
        winning_bids(env, load)
        .key_by(lambda closed: closed[2], key_type=Types.LONG())
        .process(AverageOfLastTen(), output_type=Types.TUPLE([Types.LONG(), Types.LONG(), Types.DOUBLE()]))
    )


# -- q5, q7, q8, q11, q12: windows ------------------------------------------------------------------------------------


class Count(AggregateFunction):
    """How many."""

    def create_accumulator(self) -> int:
        """None yet."""
        return 0

    def add(self, value: Any, accumulator: int) -> int:
        """One more."""
        return accumulator + 1

    def get_result(self, accumulator: int) -> int:
        """All of the window."""
        return accumulator

    def merge(self, acc_a: int, acc_b: int) -> int:
        """Both windows together."""
        return acc_a + acc_b


class WithKeyAndWindow(ProcessWindowFunction[Any, Any, Any, Any]):
    """(key, begin of the window, its end, count)."""

    def process(
        self, key: int, context: ProcessWindowFunction.Context[Any], elements: Iterable[int]
    ) -> Iterator[tuple[int, int, int, int]]:
        """The one count of a window."""
        for count in elements:
            yield key, context.window().start, context.window().end, count


def count_bids(stream: DataStream, field: int, windows: WindowAssigner[Any, Any]) -> DataStream:
    """(key, begin, end, count) of the bids with the same field."""
    return (
        stream.key_by(lambda b: b[field], key_type=Types.LONG())
        .window(windows)
        .aggregate(Count(), WithKeyAndWindow(), accumulator_type=Types.LONG(), output_type=longs(4))
    )


class Highest(AggregateFunction):
    """All records of a window that are highest in a field."""

    def __init__(self, field: int) -> None:
        self.field = field

    def create_accumulator(self) -> list[tuple[Any, ...]]:
        """None yet."""
        return []

    def add(self, value: tuple[Any, ...], accumulator: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        """Higher than all before, as high, or nothing."""
        return self.merge(accumulator, [value])

    def get_result(self, accumulator: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        """Those of the window."""
        return accumulator

    def merge(self, acc_a: list[tuple[Any, ...]], acc_b: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        """Both windows together."""
        if not acc_a or not acc_b:
            return acc_a or acc_b
        left, right = acc_a[0][self.field], acc_b[0][self.field]
        if left == right:
            return acc_a + acc_b
        return acc_a if left > right else acc_b


class Each(ProcessWindowFunction[Any, Any, Any, Any]):
    """The records of the list that a window's aggregate is."""

    def process(
        self, key: int, context: ProcessWindowFunction.Context[Any], elements: Iterable[list[tuple[Any, ...]]]
    ) -> Iterator[tuple[Any, ...]]:
        """The one list of a window."""
        for records in elements:
            yield from records


def highest(stream: DataStream, key: int | None, field: int, seconds: int) -> DataStream:
    """The records, of four numbers, that are highest in `field`, by window and by the field `key` if there is one."""
    keyed = stream.key_by(lambda value: 0 if key is None else value[key], key_type=Types.LONG())
    return keyed.window(TumblingEventTimeWindows.of(Time.seconds(seconds))).aggregate(
        Highest(field), Each(), accumulator_type=Types.LIST(longs(4)), output_type=longs(4)
    )


def build_q5(env: StreamExecutionEnvironment, load: Workload) -> DataStream:
    """The auctions with most bids in the last 10 seconds, every 2 seconds: (auction, begin, end, bids)."""
    windows = SlidingEventTimeWindows.of(Time.seconds(10), Time.seconds(2))
    # The counts of a window have its last moment as their time: each lies in another window of 2 seconds.
    return highest(count_bids(bids(places(env, load), load), 0, windows), 2, 3, 2)


def build_q7(env: StreamExecutionEnvironment, load: Workload) -> DataStream:
    """The highest bids of every 10 seconds, first by auction, then of all: (auction, bidder, price, time)."""
    offers = bids(places(env, load), load).map(lambda b: (b[0], b[1], b[2], b[5]), output_type=longs(4))
    return highest(highest(offers, 0, 2, 10), None, 2, 10)


class NameAndSales(AggregateFunction):
    """(name of the new user, "" if there is none; auctions)."""

    def create_accumulator(self) -> tuple[str, int]:
        """Neither yet."""
        return "", 0

    def add(self, value: tuple[int, str, int], accumulator: tuple[str, int]) -> tuple[str, int]:
        """A user or an auction."""
        return accumulator[0] or value[1], accumulator[1] + value[2]

    def get_result(self, accumulator: tuple[str, int]) -> tuple[str, int]:
        """Both."""
        return accumulator

    def merge(self, acc_a: tuple[str, int], acc_b: tuple[str, int]) -> tuple[str, int]:
        """Both windows together."""
        return acc_a[0] or acc_b[0], acc_a[1] + acc_b[1]


class NewSeller(ProcessWindowFunction[Any, Any, Any, Any]):
    """(user, name, begin of the window) if the user is new and sells."""

    def process(
        self, key: int, context: ProcessWindowFunction.Context[Any], elements: Iterable[tuple[str, int]]
    ) -> Iterator[tuple[int, str, int]]:
        """What is known of one user in a window."""
        for name, sales in elements:
            if name and sales:
                yield key, name, context.window().start


def build_q8(env: StreamExecutionEnvironment, load: Workload) -> DataStream:
    """Who registered and began an auction in the same 10 seconds: (user, name, begin)."""
    events = places(env, load)
    users = persons(events, load).map(lambda p: (p[0], p[1], 0), output_type=USER)
    sales = auctions(events, load).map(lambda a: (a[7], "", 1), output_type=USER)
    return (
        users.union(sales)
        .key_by(lambda s: s[0], key_type=Types.LONG())
        .window(TumblingEventTimeWindows.of(Time.seconds(10)))
        .aggregate(
            NameAndSales(),
            NewSeller(),
            accumulator_type=Types.TUPLE([Types.STRING(), Types.LONG()]),
            output_type=USER,
        )
    )


def build_q8_co_group(env: StreamExecutionEnvironment, load: Workload) -> DataStream:
    """q8 with co_group, which PyFlink lacks."""

    def new_sellers(users: Iterable[Any], sales: Iterable[Any]) -> Iterator[tuple[int, str, int]]:
        if any(True for _ in sales):
            for user in users:
                yield user[0], user[1], user[6] // 10_000 * 10_000

    events = places(env, load)
    return (
        persons(events, load)
        .co_group(auctions(events, load))
        .where(lambda p: p[0])
        .equal_to(lambda a: a[7])
        .window(TumblingEventTimeWindows.of(Time.seconds(10)))
        .apply(new_sellers, output_type=USER)
    )


def build_q11(env: StreamExecutionEnvironment, load: Workload) -> DataStream:
    """How often users bid before they rest for 10 seconds: (bidder, begin, end, bids)."""
    return count_bids(bids(places(env, load), load), 1, EventTimeSessionWindows.with_gap(Time.seconds(10)))


def build_q12(env: StreamExecutionEnvironment, load: Workload) -> DataStream:
    """How often users bid in 10 seconds of processing time: (bidder, begin, end, bids)."""
    return count_bids(bids(places(env, load), load), 1, TumblingProcessingTimeWindows.of(Time.seconds(10)))
