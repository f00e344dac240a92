"""The fingerprint of a program changes with its functions, and with nothing else."""

import subprocess
import sys
from operator import itemgetter

import pytest

from penstock.connectors import DiscardingSink
from penstock.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from penstock.datastream.functions import KeySelector
from penstock.graph.job_graph import translate
from penstock.runtime.plan.code_fingerprint import fingerprint


class Count(KeyedProcessFunction):
    def process_element(self, value, ctx):
        yield 1


class CountTwice(KeyedProcessFunction):
    def process_element(self, value, ctx):
        yield 2


class First(KeySelector):
    def get_key(self, value):
        return value[0]


class Second(KeySelector):
    def get_key(self, value):
        return value[1]


def code_of(selector, function=Count, prepare=None):
    env = StreamExecutionEnvironment.get_execution_environment()
    stream = env.from_collection([("a", 1)])
    if prepare is not None:
        stream = stream.map(prepare)
    stream.key_by(selector).process(function()).sink_to(DiscardingSink())
    return fingerprint(translate(env.sinks, env.job_settings("job")).vertices)


PROGRAMS = [
    (lambda value: value[0],),
    (lambda value: value[1],),
    (lambda value: (value[0], 0),),
    (itemgetter(0),),
    (itemgetter(1),),
    (First(),),
    (Second(),),
    ("id",),
    ("name",),
    (str,),
    (repr,),
    (lambda value: value[0], CountTwice),
    (lambda value: value[0], Count, lambda value: (str(value[0]), 1)),
    (lambda value: value[0] in {"a", "b", "c"},),
]


def test_programs_with_other_functions_have_other_fingerprints():
    found = [code_of(*program) for program in PROGRAMS]
    assert len(set(found)) == len(PROGRAMS)
    assert found == [code_of(*program) for program in PROGRAMS]


@pytest.mark.parametrize("seed", ["1", "2"])
def test_another_process_finds_the_same(seed):
    script = (
        "from tests.runtime.plan.test_code_fingerprint import *\nprint(*[code_of(*program) for program in PROGRAMS])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
    )
    assert done.stdout.split() == [code_of(*program) for program in PROGRAMS]
