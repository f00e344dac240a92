"""One stream, record by record: map, filter, flat_map, rolling aggregates, function objects, types (ch. 1, 3 and 5)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from sensors import SensorReading
from showcase import Showcase

from penstock.common import Row, Types
from penstock.common.typeinfo import TypeInformation
from penstock.datastream import DataStream, StreamExecutionEnvironment
from penstock.datastream.functions import FilterFunction, FlatMapFunction, MapFunction, RuntimeContext
from penstock.datastream.state import ValueStateDescriptor

book = Showcase(__doc__)

READINGS = [
    SensorReading("sensor_1", 1_000, 25.3),
    SensorReading("sensor_2", 2_000, 21.7),
    SensorReading("sensor_1", 3_000, 24.1),
    SensorReading("sensor_2", 4_000, 25.0),
    SensorReading("sensor_1", 5_000, 26.9),
    SensorReading("sensor_2", 6_000, 20.4),
]

TWEETS = [
    "the river is high #weather #river",
    "reading about streams #flink",
    "and more rain #weather",
    "joined two streams with flink today #flink #streams",
    "nothing to tag here",
]


@book.example("E02", "Count hashtags")
def hashtag_count(env: StreamExecutionEnvironment) -> DataStream:
    """Two operators with two tasks each: one finds the hashtags of tweets, one counts them, key by key."""
    return (
        env.from_collection(TWEETS)
        .flat_map(lambda tweet: [(word, 1) for word in tweet.split() if word.startswith("#")])
        .set_parallelism(2)
        .key_by(0)
        .sum(1)
        .set_parallelism(2)
    )


@book.example("E04", "Rolling minimum")
def rolling_minimum(env: StreamExecutionEnvironment) -> dict[str, DataStream]:
    """One update for every reading. min changes only its field of the first record; min_by gives the whole record."""
    by_sensor = env.from_collection(READINGS).key_by("id")
    return {"min": by_sensor.min("temperature"), "min_by": by_sensor.min_by("temperature")}


class CountRecords(MapFunction):
    """Numbers the records of each key, in state that a crash does not lose."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG(), default_value=0))

    def map(self, value: SensorReading) -> tuple[str, int]:
        self.count.update(self.count.value() + 1)
        return value.id, self.count.value()


@book.example("E09", "Count records in state")
def record_count(env: StreamExecutionEnvironment) -> DataStream:
    """A task with one number of state per key: read it, add one, write it, emit it."""
    return env.from_collection(READINGS).key_by("id").map(CountRecords())


@book.example("E10", "map, filter, flat_map")
def basic_transformations(env: StreamExecutionEnvironment) -> dict[str, DataStream]:
    """Exactly one, at most one, or any number of records out for each one in."""
    readings = env.from_collection(READINGS)
    sentences = env.from_elements("streams never end", "but windows do")
    return {
        "map to the sensor": readings.map(lambda reading: reading.id),
        "filter from 25 degrees": readings.filter(lambda reading: reading.temperature >= 25),
        "flat_map to words": sentences.flat_map(lambda sentence: sentence.split()),
    }


COPIES = {"white": 1, "black": 2, "gray": 0}


@book.example("E11", "flat_map does what map and filter do, and more")
def flat_map_by_colour(env: StreamExecutionEnvironment) -> DataStream:
    """White records pass, black ones are doubled, gray ones are dropped."""
    return env.from_elements("white", "black", "gray", "white", "gray").flat_map(
        lambda colour: [colour] * COPIES[colour]
    )


@book.example("E12", "Rolling sum")
def rolling_sum(env: StreamExecutionEnvironment) -> DataStream:
    """Keyed by the first field, the second is summed up; the third stays that of the first record of the key."""
    return env.from_elements((1, 2, 2), (2, 3, 1), (2, 2, 4), (1, 5, 3)).key_by(0).sum(1)


@book.example("E13", "Words per language")
def words_per_language(env: StreamExecutionEnvironment) -> DataStream:
    """Reduce: what was so far and the new record become what is so far, in this order."""
    return (
        env.from_elements(("en", ["tea"]), ("fr", ["vin"]), ("en", ["cake"]))
        .key_by(0)
        .reduce(lambda so_far, new: (so_far[0], so_far[1] + new[1]))
    )


class Person(NamedTuple):
    """Any class makes a record."""

    name: str
    age: int


@book.example("E20", "Numbers and objects")
def numbers_and_objects(env: StreamExecutionEnvironment) -> dict[str, DataStream]:
    """Records are plain Python values, of whatever type."""
    return {
        "incremented": env.from_elements(1, 2, 3, 4).map(lambda n: n + 1),
        "older than 18": env.from_elements(Person("Adam", 17), Person("Sarah", 23)).filter(lambda p: p.age > 18),
    }


PERSON_TYPE = Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.INT()])


class TupleToPerson(MapFunction):
    """Says itself what it makes."""

    def map(self, value: tuple[str, int]) -> Row:
        return Row(name=value[0], age=value[1])

    def get_produced_type(self) -> TypeInformation:
        """The type of the results."""
        return PERSON_TYPE


@book.example("E21", "Type hints")
def type_hints(env: StreamExecutionEnvironment) -> dict[str, DataStream]:
    """Three ways to declare a type: by the function, with the call, and afterwards. Records are checked against it."""
    tuples = env.from_elements(("Adam", 17), ("Sarah", 23))
    return {
        "by the function": tuples.map(TupleToPerson()),
        "with the call": tuples.map(lambda t: Row(name=t[0], age=t[1]), output_type=PERSON_TYPE),
        "afterwards": tuples.map(lambda t: Row(name=t[0], age=t[1])).returns(PERSON_TYPE),
    }


class FlinkFilter(FilterFunction):
    """Tweets about one thing."""

    def filter(self, value: str) -> bool:
        return "flink" in value


class KeywordFilter(FilterFunction):
    """Tweets about a thing given when the job is defined: function objects travel to the tasks with their members."""

    def __init__(self, keyword: str) -> None:
        self.keyword = keyword

    def filter(self, value: str) -> bool:
        return self.keyword in value


@book.example("E23", "Functions as classes, objects and lambdas")
def keyword_filters(env: StreamExecutionEnvironment) -> dict[str, DataStream]:
    """The same filter in three forms."""
    tweets = env.from_collection(TWEETS)
    return {
        "FlinkFilter()": tweets.filter(FlinkFilter()),
        "KeywordFilter('flink')": tweets.filter(KeywordFilter("flink")),
        "lambda": tweets.filter(lambda tweet: "flink" in tweet),
    }


class EvenAndOdd(FlatMapFunction):
    """Knows which of the parallel tasks it runs in."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.subtask = runtime_context.get_index_of_this_subtask()

    def flat_map(self, value: int) -> Iterator[Any]:
        if value % 2 == self.subtask:
            yield self.subtask, value


@book.example("E24", "A function that asks where it runs")
def rich_flat_map(env: StreamExecutionEnvironment) -> DataStream:
    """Both tasks see all numbers; the first keeps the even ones, the second the odd ones."""
    return env.from_sequence(1, 6).broadcast().flat_map(EvenAndOdd()).set_parallelism(2)


if __name__ == "__main__":
    raise SystemExit(book.main())
