"""key_by and the rolling aggregates of keyed streams (rules 5.3, 5.8)."""

from dataclasses import dataclass

import pytest
from support import by_key, last_by_key

from penstock.common import Row
from penstock.datastream import KeySelector, ReduceFunction

ROLLING_SUM_INPUT = [(1, 2, 2), (2, 3, 1), (2, 2, 4), (1, 5, 3)]


@dataclass(frozen=True)
class Address:
    zip: str
    city: str


@dataclass(frozen=True)
class Person:
    name: str
    address: Address


class LargerField(KeySelector):
    def get_key(self, value):
        return max(value[0], value[1])


class Concatenate(ReduceFunction):
    def reduce(self, value1, value2):
        return value1[0], value1[1] + value2[1]


def counted(stream):
    """(key, number of records) of a keyed stream."""
    key = stream.get_key_selector()
    return (
        stream.map(lambda record: (key(record), 1))
        .key_by(lambda pair: pair[0])
        .reduce(lambda a, b: (a[0], a[1] + b[1]))
    )


def counts(records):
    return {key: count for key, (_, count) in last_by_key(records).items()}


@pytest.mark.on_spark((4, "STREAMING"))
def test_every_form_of_key_groups_the_same_records(env, run):
    triples = env.from_collection([("a", 1, "x"), ("b", 1, "x"), ("a", 2, "x"), ("a", 1, "y")])
    people = env.from_collection(
        [Person("Ann", Address("1", "Bern")), Person("Bob", Address("1", "Bonn")), Person("Cy", Address("2", "Bonn"))]
    )
    dicts = env.from_collection([{"id": 1, "v": {"w": "p"}}, {"id": 2, "v": {"w": "p"}}, {"id": 1, "v": {"w": "q"}}])
    rows = env.from_collection([Row(id="r", n=1), Row(id="s", n=1), Row(id="r", n=2)])
    keyed = {
        "function": triples.key_by(lambda t: t[0]),
        "position": triples.key_by(0),
        "composite": triples.key_by(0, 1),
        "composite_list": triples.key_by([0, 1]),
        "java_name": triples.key_by("f0"),
        "selector": env.from_collection([(1, 3), (3, 2), (2, 2)]).key_by(LargerField()),
        "attribute": people.key_by("name"),
        "nested": people.key_by("address.zip"),
        "dict_name": dicts.key_by("id"),
        "dict_nested": dicts.key_by("v.w"),
        "row_name": rows.key_by("id"),
    }
    results = {name: counts(records) for name, records in run(**{n: counted(k) for n, k in keyed.items()}).items()}
    assert results["function"] == results["position"] == results["java_name"] == {"a": 3, "b": 1}
    assert results["composite"] == results["composite_list"] == {("a", 1): 2, ("b", 1): 1, ("a", 2): 1}
    assert results["selector"] == {3: 2, 2: 1}
    assert results["attribute"] == {"Ann": 1, "Bob": 1, "Cy": 1}
    assert results["nested"] == {"1": 2, "2": 1}
    assert results["dict_name"] == {1: 2, 2: 1}
    assert results["dict_nested"] == {"p": 2, "q": 1}
    assert results["row_name"] == {"r": 2, "s": 1}


@pytest.mark.variants(modes=["STREAMING"])
@pytest.mark.on_spark((4, "STREAMING"))
def test_rolling_aggregates_emit_an_update_for_every_record(env, run):
    keyed = env.from_collection(ROLLING_SUM_INPUT).key_by(0)
    events = env.from_collection([("a", 5, "first"), ("a", 3, "second"), ("a", 3, "third"), ("a", 9, "fourth")]).key_by(
        0
    )
    results = run(
        sum=keyed.sum(1),
        min=events.min(1),
        max=events.max(1),
        min_by=events.min_by(1),
        min_by_last=events.min_by(1, first=False),
        max_by=events.max_by(1),
        reduce=env.from_collection([("en", ["tea"]), ("fr", ["vin"]), ("en", ["cake"])])
        .key_by(0)
        .reduce(Concatenate()),
        reduce_lambda=keyed.reduce(lambda a, b: (a[0], max(a[1], b[1]), b[2])),
    )
    # Only the aggregated field changes, the others stay as in the first record of the key (example E12).
    assert by_key(results["sum"]) == {1: [(1, 2, 2), (1, 7, 2)], 2: [(2, 3, 1), (2, 5, 1)]}
    assert results["min"] == [("a", 5, "first"), ("a", 3, "first"), ("a", 3, "first"), ("a", 3, "first")]
    assert results["max"] == [("a", 5, "first"), ("a", 5, "first"), ("a", 5, "first"), ("a", 9, "first")]
    # The whole extreme record; of equal ones the first.
    assert results["min_by"] == [("a", 5, "first"), ("a", 3, "second"), ("a", 3, "second"), ("a", 3, "second")]
    assert results["min_by_last"] == [("a", 5, "first"), ("a", 3, "second"), ("a", 3, "third"), ("a", 3, "third")]
    assert results["max_by"] == [("a", 5, "first"), ("a", 5, "first"), ("a", 5, "first"), ("a", 9, "fourth")]
    # reduce(current, new); the first record is emitted as it is.
    assert by_key(results["reduce"]) == {"en": [("en", ["tea"]), ("en", ["tea", "cake"])], "fr": [("fr", ["vin"])]}
    assert by_key(results["reduce_lambda"]) == {1: [(1, 2, 2), (1, 5, 3)], 2: [(2, 3, 1), (2, 3, 4)]}


@pytest.mark.variants(modes=["BATCH"])
@pytest.mark.on_spark((4, "BATCH"))
def test_rolling_aggregates_emit_only_the_last_value_of_each_key_in_batch_mode(env, run):
    keyed = env.from_collection(ROLLING_SUM_INPUT).key_by(0)
    results = run(
        sum=keyed.sum(1),
        min=keyed.min(2),
        max=keyed.max(2),
        min_by=keyed.min_by(1),
        max_by=keyed.max_by(1),
        reduce=keyed.reduce(lambda a, b: (a[0], a[1] * b[1], 0)),
    )
    assert {name: sorted(records) for name, records in results.items()} == {
        "sum": [(1, 7, 2), (2, 5, 1)],
        "min": [(1, 2, 2), (2, 3, 1)],
        "max": [(1, 2, 3), (2, 3, 4)],
        "min_by": [(1, 2, 2), (2, 2, 4)],
        "max_by": [(1, 5, 3), (2, 3, 1)],
        "reduce": [(1, 10, 0), (2, 6, 0)],
    }


def test_two_key_bys_in_sequence(env, run):
    orders = [("ann", "books", 3), ("bob", "books", 4), ("ann", "toys", 5), ("bob", "books", 1)]
    per_customer = env.from_collection(orders).key_by(0, 1).sum(2)
    last_totals = per_customer.key_by(1).max(2)
    final = last_by_key(run(last_totals), key=lambda order: order[1])
    assert {product: order[2] for product, order in final.items()} == {"books": 5, "toys": 5}


def test_the_same_key_always_meets_the_same_state(env, run):
    stream = env.from_sequence(1, 60).map(lambda n: (n % 7, 1)).key_by(0).reduce(lambda a, b: (a[0], a[1] + b[1]))
    assert counts(run(stream)) == {key: len(range(1, 61)[(key - 1) % 7 :: 7]) for key in range(7)}


@pytest.mark.parametrize(
    "keys",
    [
        [None, None, 0],
        [True, False, True],
        [1, 1.0, True],
        ["", "ä", "\N{SNOWMAN}"],
        [(1, ("a", None)), (1, ("a", None)), (2, ("a", None))],
        [b"x", b"y", b"x"],
        [Address("1", "x"), Address("1", "x"), Address("1", "y")],
        [frozenset({1, 2}), frozenset({2, 1}), frozenset()],
        [10**30, 10**30, -(10**30)],
    ],
    ids=lambda keys: type(keys[0]).__name__,
)
def test_keys_can_be_anything_hashable(env, run, keys):
    expected = {}
    for key in keys:
        expected[key] = expected.get(key, 0) + 1
    stream = env.from_collection(list(enumerate(keys))).key_by(1)
    assert counts(run(counted(stream))) == expected
