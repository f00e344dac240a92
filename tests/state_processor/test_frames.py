"""What DataFrames of state need besides Spark: types for Python values, functions that travel."""

import pickle
import sys
from dataclasses import dataclass

import pytest

from penstock.common import Row
from penstock.core.window import TimeWindow
from penstock.spark.savepoint_frames import Shipped, ddl_of, spark_value


@dataclass
class Point:
    x: int
    y: float


@pytest.mark.parametrize(
    ("value", "ddl", "held"),
    [
        (True, "boolean", True),
        (7, "bigint", 7),
        ("a", "string", "a"),
        ([1.5], "array<double>", [1.5]),
        ({"a": 1}, "map<string,bigint>", {"a": 1}),
        (("a", 1), "struct<`f0`:string,`f1`:bigint>", ("a", 1)),
        (Row(name="a", n=1), "struct<`name`:string,`n`:bigint>", ("a", 1)),
        (Point(1, 2.0), "struct<`x`:bigint,`y`:double>", (1, 2.0)),
        (TimeWindow(0, 5), "struct<`start`:bigint,`end`:bigint>", (0, 5)),
        (None, "string", None),
        (1j, "string", "1j"),
    ],
    ids=repr,
)
def test_python_values_have_a_type_in_spark(value, ddl, held):
    assert ddl_of(value) == ddl
    assert spark_value(value, ddl) == held


def test_functions_bring_the_path_to_their_modules(monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path, "/where/the/users/modules/are"])
    offset = 3
    data = pickle.dumps(Shipped(lambda value: value + offset))
    monkeypatch.setattr(sys, "path", sys.path[:-1])
    assert pickle.loads(data)(4) == 7
    assert "/where/the/users/modules/are" in sys.path
