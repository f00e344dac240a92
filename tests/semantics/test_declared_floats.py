"""A declared FLOAT has 32 bits, wherever it is declared."""

import pytest

from penstock.common import Row, Types
from penstock.datastream import OutputTag, ProcessFunction
from penstock.formats.csv import CsvRowDeserializationSchema, CsvRowSerializationSchema
from penstock.formats.json import JsonRowDeserializationSchema, JsonRowSerializationSchema

pytestmark = pytest.mark.variants(executors=("warm",), parallelism=(1,))

TENTH = 0.10000000149011612  # the nearest number of 32 bits
PAIR = Types.ROW_NAMED(["k", "x"], [Types.STRING(), Types.FLOAT()])


@pytest.mark.parametrize(
    ("declared", "given", "expected"),
    [
        (Types.FLOAT(), 0.1, TENTH),
        (Types.FLOAT(), 16777217, 16777216.0),
        (Types.FLOAT(), 1e39, float("inf")),
        (Types.FLOAT(), None, None),
        (Types.DOUBLE(), 0.1, 0.1),
        (Types.TUPLE([Types.STRING(), Types.FLOAT()]), ("a", 0.1), ("a", TENTH)),
        (PAIR, Row("a", 0.1), Row(k="a", x=TENTH)),
        (Types.LIST(Types.FLOAT()), [0.1, 0.5], [TENTH, 0.5]),
        (Types.PRIMITIVE_ARRAY(Types.FLOAT()), [0.1], [TENTH]),
        (Types.MAP(Types.STRING(), Types.FLOAT()), {"a": 0.1}, {"a": TENTH}),
        (Types.TUPLE([Types.TUPLE([Types.FLOAT()])]), ((0.1,),), ((TENTH,),)),
    ],
)
def test_a_declared_float_has_32_bits(env, run, declared, given, expected):
    collected = run(
        read=env.from_collection([given], type_info=declared),
        made=env.from_collection([given]).map(lambda value: value, output_type=declared),
    )
    assert collected == {"read": [expected], "made": [expected]}


def test_a_float_in_a_side_output_has_32_bits(env, run):
    tag = OutputTag("side", Types.FLOAT())

    class Aside(ProcessFunction):
        def process_element(self, value, ctx):
            yield tag, value

    processed = env.from_collection([0.1]).process(Aside())
    assert run(processed.get_side_output(tag)) == [TENTH]


def test_a_sum_of_floats_is_a_float(env, run, variant):
    keyed = env.from_collection([("a", 0.1), ("a", 0.2)], type_info=PAIR).key_by(lambda row: row.k)
    results = run(rolling=keyed.sum("x"), window=keyed.count_window(2).sum("x"))
    total = 0.30000001192092896
    assert results["window"] == [Row(k="a", x=total)]
    assert results["rolling"][-1] == Row(k="a", x=total)


def test_rounding_a_float_leaves_the_row_that_the_function_holds_as_it_is(env, run):
    class Running:
        def __init__(self):
            self.total = Row("a", 0.0)

        def __call__(self, value):
            self.total[1] += value
            return self.total

    results = run(env.from_collection([0.1] * 10).map(Running(), output_type=PAIR))
    assert results[-1] == Row(k="a", x=1.0)  # ten roundings would give 1.0000001192092896


def test_text_formats_read_a_float_as_32_bits_and_write_it_with_few_digits():
    json_in = JsonRowDeserializationSchema.builder().type_info(PAIR).build()
    json_out = JsonRowSerializationSchema.builder().with_type_info(PAIR).build()
    csv_in = CsvRowDeserializationSchema.Builder(PAIR).build()
    csv_out = CsvRowSerializationSchema.Builder(PAIR).build()
    row = Row(k="a", x=TENTH)
    assert json_in.deserialize(b'{"k": "a", "x": 0.1}') == row
    assert csv_in.deserialize(b"a,0.1") == row
    assert json_out.serialize(row).replace(b" ", b"") == b'{"k":"a","x":0.1}'
    assert csv_out.serialize(row) == b"a,0.1\n"
