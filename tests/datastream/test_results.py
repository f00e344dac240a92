"""collect(), async for and show(): the records of a stream in the program."""

import asyncio
from dataclasses import dataclass
from typing import NamedTuple

import pytest

from penstock.common import Row
from penstock.common.errors import PenstockError
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.show import text_table
from penstock.testing import MiniCluster


def test_collect_gives_the_records_as_they_come(running_env):
    doubled = running_env.set_parallelism(1).from_collection([1, 2, 3]).map(lambda n: 2 * n)
    assert list(doubled.collect()) == [2, 4, 6]
    with doubled.collect() as records:
        assert next(records) == 2
    assert list(records) == []


def test_async_for_gives_the_same(running_env):
    async def total(stream):
        return sum([n async for n in stream.collect()])

    assert asyncio.run(total(running_env.from_sequence(1, 100))) == 5_050


def test_leaving_an_async_block_cancels_the_job():
    async def first(stream):
        async with stream.collect() as records:
            async for record in records:
                return record, records
        return None

    env = StreamExecutionEnvironment(executor=MiniCluster(max_records=3)).set_parallelism(1)
    endless = env.from_sequence(0, 2**60)
    record, records = asyncio.run(first(endless))
    assert record == 0
    assert list(records) == []


def test_an_async_iteration_raises_what_failed_the_job(running_env):
    async def read(stream):
        return [n async for n in stream.collect()]

    with pytest.raises(PenstockError, match="ZeroDivisionError"):
        asyncio.run(read(running_env.from_collection([0]).map(lambda n: 1 / n)))


@dataclass
class Point:
    x: int
    name: str


class Pair(NamedTuple):
    x: int
    name: str


TABLE = """\
 x  name
--  ----
 7  a
12  bc
"""


@pytest.mark.parametrize(
    "make", [Point, Pair, lambda x, name: Row(x=x, name=name), lambda x, name: {"x": x, "name": name}]
)
def test_show_prints_a_table_of_records_with_fields(running_env, capsys, make):
    running_env.set_parallelism(1).from_collection([make(7, "a"), make(12, "bc"), make(0, "d")]).show(2)
    assert capsys.readouterr().out == TABLE


def test_show_prints_other_records_line_by_line(running_env, capsys):
    running_env.set_parallelism(1).from_collection(["a", ("b", 1)]).show()
    assert capsys.readouterr().out == "'a'\n('b', 1)\n"


def test_long_values_are_cut_and_missing_ones_are_empty():
    lines = text_table([{"a": "x" * 50}, {"b": 1}]).splitlines()
    assert lines[2] == f"{'x' * 37}..."
    assert lines[3].split() == ["1"]
