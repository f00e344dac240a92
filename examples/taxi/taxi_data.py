"""Taxi rides and fares of a made-up New York, the same in every run: results can be compared with published ones.

The rules of the generators are those of the Flink training course. Everything about a ride follows from its number, by
way of Java's random numbers; so the published answers of the exercises are the answers here.
"""

from __future__ import annotations

import argparse
import heapq
import math
import struct
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from functools import cache
from typing import NamedTuple

from penstock.common import WatermarkStrategy
from penstock.datastream import DataStream, StreamExecutionEnvironment
from penstock.datastream.connectors import DataGeneratorSource, GeneratorFunction
from penstock.datastream.functions import RuntimeContext

MINUTE = 60_000
HOUR = 60 * MINUTE
BEGIN = int(datetime(2020, 1, 1, 12, tzinfo=UTC).timestamp()) * 1000
BETWEEN_RIDES = 20_000
RIDES_A_BATCH = 5
LONGEST_RIDE = 600  # minutes

WEST, EAST = -74.05, -73.7
SOUTH, NORTH = 40.5, 41.0


class TaxiRide(NamedTuple):
    """A ride begins or ends: two events for each ride."""

    ride_id: int
    is_start: bool
    event_time: int
    start_lon: float
    start_lat: float
    end_lon: float
    end_lat: float
    passengers: int
    taxi_id: int
    driver_id: int


class TaxiFare(NamedTuple):
    """What a ride cost."""

    ride_id: int
    taxi_id: int
    driver_id: int
    start_time: int
    payment_type: str
    tip: float
    tolls: float
    total_fare: float


# -- the city ---------------------------------------------------------------------------------------------------------


def in_new_york(lon: float, lat: float) -> bool:
    """Whether a place is in the city: a box, its borders included."""
    return WEST <= lon <= EAST and SOUTH <= lat <= NORTH


def grid_cell(lon: float, lat: float) -> int:
    """The cell of about 100 m x 100 m a place is in; 250 cells from west to east, row after row from the north."""
    return math.floor((abs(WEST) - abs(lon)) / 0.0014) + 250 * math.floor((NORTH - lat) / 0.00125)


# -- random numbers ---------------------------------------------------------------------------------------------------


class JavaRandom:
    """The numbers java.util.Random gives, as its documentation defines them.

    >>> draw = JavaRandom(42)
    >>> [draw.next_int(10) for _ in range(5)]
    [0, 3, 8, 4, 0]
    """

    def __init__(self, seed: int) -> None:
        self._state = (seed ^ 0x5DEECE66D) & ((1 << 48) - 1)
        self._spare: float | None = None

    def _bits(self, count: int) -> int:
        self._state = (self._state * 0x5DEECE66D + 0xB) & ((1 << 48) - 1)
        return self._state >> (48 - count)

    def next_int(self, bound: int) -> int:
        """Evenly from 0 to below the bound."""
        if bound & (bound - 1) == 0:
            return (bound * self._bits(31)) >> 31
        while True:
            bits = self._bits(31)
            value = bits % bound
            if bits - value + (bound - 1) < 1 << 31:  # otherwise the last, incomplete stretch of numbers
                return value

    def next_double(self) -> float:
        """Evenly from 0 to below 1."""
        return ((self._bits(26) << 27) + self._bits(27)) / (1 << 53)

    def next_gaussian(self) -> float:
        """With mean 0 and deviation 1: Marsaglia's polar method, which gives two at a time."""
        if self._spare is not None:
            value, self._spare = self._spare, None
            return value
        while True:
            x, y = 2 * self.next_double() - 1, 2 * self.next_double() - 1
            square = x * x + y * y
            if 0 < square < 1:
                factor = math.sqrt(-2 * math.log(square) / square)
                self._spare = y * factor
                return x * factor

    def shuffled(self, items: Iterable[TaxiRide]) -> list[TaxiRide]:
        """In another order: from the last place on, each is swapped with a random one before it."""
        result = list(items)
        for last in range(len(result) - 1, 0, -1):
            other = self.next_int(last + 1)
            result[last], result[other] = result[other], result[last]
        return result


def float32(value: float) -> float:
    """Rounded to a 32-bit float: coordinates are such, and a ride at the border must be on the right side."""
    return float(struct.unpack("f", struct.pack("f", value))[0])


def whole_number(seed: int, low: int, high: int, mean: float, deviation: float) -> int:
    """The first of the seed's bell-shaped numbers that is within the bounds."""
    draw = JavaRandom(seed)
    while True:
        value = math.floor(deviation * draw.next_gaussian() + mean + 0.5)
        if low <= value <= high:
            return value


def coordinate(seed: int, low: float, high: float) -> float:
    """Bell-shaped between the bounds, which are four deviations away."""
    low, high = float32(low), float32(high)
    mean, deviation = float32(float32(low + high) / 2), float32(float32(high - low) / 8)
    draw = JavaRandom(seed)
    while True:
        value = float32(float32(deviation * draw.next_gaussian()) + mean)
        if low <= value <= high:
            return value


# -- rides and fares by number ----------------------------------------------------------------------------------------


def start_time(ride_id: int) -> int:
    """A ride begins every 20 seconds."""
    return BEGIN + BETWEEN_RIDES * ride_id


@cache
def minutes(ride_id: int) -> int:
    """How long a ride takes."""
    return whole_number(ride_id, 0, LONGEST_RIDE, 20, 40)


def driver(ride_id: int) -> int:
    """One of 200."""
    return 2_013_000_000 + JavaRandom(ride_id).next_int(200)


def ride(ride_id: int, *, is_start: bool) -> TaxiRide:
    """The event of a ride's begin or end. Some begin or end a little outside the city."""
    margin = 0.1
    return TaxiRide(
        ride_id,
        is_start,
        start_time(ride_id) + (0 if is_start else minutes(ride_id) * MINUTE),
        coordinate(ride_id, WEST - margin, EAST + margin),
        coordinate(ride_id, SOUTH - margin, NORTH + margin),
        coordinate(ride_id + 42, WEST - margin, EAST + margin),
        coordinate(ride_id + 42, SOUTH - margin, NORTH + margin),
        whole_number(ride_id, 1, 4, 2.5, 0.375),
        driver(ride_id),
        driver(ride_id),
    )


def fare(ride_id: int) -> TaxiFare:
    """The fare of a ride."""
    tip = float(whole_number(ride_id, 0, 60, 10, 15))
    tolls = float(whole_number(ride_id, 0, 5, 2.5, 0.625)) if ride_id % 10 == 0 else 0.0
    return TaxiFare(
        ride_id,
        driver(ride_id),
        driver(ride_id),
        start_time(ride_id),
        "CARD" if ride_id % 2 == 0 else "CASH",
        tip,
        tolls,
        3.0 + minutes(ride_id) + tip + tolls,
    )


# -- streams ----------------------------------------------------------------------------------------------------------


class RideBatches(GeneratorFunction):
    """The n-th batch of ride events: ends that are due by now, then five begins in a random order.

    An end that is due before the last of the five begins comes before its own begin: events are out of order. The last
    batch brings all ends that are left.
    """

    def __init__(self, batches: int) -> None:
        self.batches = batches

    def open(self, runtime_context: RuntimeContext) -> None:
        self._next = -1
        self._ends: list[tuple[int, int]] = []

    def map(self, value: int) -> list[TaxiRide]:
        if value != self._next:  # the first batch, or a replay: which rides are under way at this point?
            self._ends = self._under_way(value)
        self._next = value + 1
        first = value * RIDES_A_BATCH + 1
        rides = range(first, first + RIDES_A_BATCH)
        for ride_id in rides:
            heapq.heappush(self._ends, (start_time(ride_id) + minutes(ride_id) * MINUTE, ride_id))
        begins = JavaRandom(first - 1).shuffled(ride(ride_id, is_start=True) for ride_id in rides)
        if self._next == self.batches:
            return [
                *self._due(start_time(rides[-1])),
                *begins,
                *self._due(start_time(rides[-1]) + LONGEST_RIDE * MINUTE),
            ]
        return [*self._due(start_time(rides[-1])), *begins]

    def _due(self, now: int) -> Iterator[TaxiRide]:
        while self._ends and self._ends[0][0] <= now:
            yield ride(heapq.heappop(self._ends)[1], is_start=False)

    @staticmethod
    def _under_way(batch: int) -> list[tuple[int, int]]:
        last = batch * RIDES_A_BATCH
        longest = LONGEST_RIDE * MINUTE // BETWEEN_RIDES
        candidates = range(max(1, last - longest), last + 1)
        ends = [(start_time(ride_id) + minutes(ride_id) * MINUTE, ride_id) for ride_id in candidates]
        return sorted(end for end in ends if end[0] > start_time(last))


def rides(env: StreamExecutionEnvironment, count: int) -> DataStream:
    """Begins and ends of so many rides, rounded up to a multiple of five."""
    batches_of_five = -(-count // RIDES_A_BATCH)
    source = DataGeneratorSource(RideBatches(batches_of_five), batches_of_five)
    batches = env.from_source(source, WatermarkStrategy.no_watermarks(), "rides").set_parallelism(1)
    return batches.flat_map(lambda batch: batch).set_parallelism(1)


def fares(env: StreamExecutionEnvironment, count: int) -> DataStream:
    """Fares of so many rides, in the order of their begins."""
    source = DataGeneratorSource(lambda index: fare(index + 1), count)
    return env.from_source(source, WatermarkStrategy.no_watermarks(), "fares").set_parallelism(1)


# -- programs ---------------------------------------------------------------------------------------------------------


def environment(parallelism: int) -> StreamExecutionEnvironment:
    """An embedded Spark; its workers get this module too, for functions that import it run there."""
    env = StreamExecutionEnvironment.get_execution_environment()
    env.add_python_file(__file__)
    return env.set_parallelism(parallelism)


def parser(description: str | None, rides: int) -> argparse.ArgumentParser:
    """The command line all exercises have."""
    arguments = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--rides", type=int, default=rides, help=f"how many there are (default: {rides:,})")
    arguments.add_argument("--parallelism", type=int, default=2, help="parallel tasks of each operator (default: 2)")
    return arguments


def clock(timestamp: int) -> str:
    """A time as day and time of day."""
    return f"{datetime.fromtimestamp(timestamp / 1000, UTC):%d %b %H:%M:%S}"
