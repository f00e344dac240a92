"""Transformations of single records (rule 5.2)."""

import pytest

from penstock.common import Row, Types
from penstock.common.errors import TypeMismatchError
from penstock.datastream import FilterFunction, FlatMapFunction, MapFunction, OutputTag, ProcessFunction

READINGS = [("sensor_1", 20.5), ("sensor_2", 31.0), ("sensor_1", 24.9), ("sensor_3", 25.0)]


class ToUpper(MapFunction):
    def map(self, value):
        return value.upper()


class AtLeast(FilterFunction):
    def __init__(self, limit):
        self.limit = limit

    def filter(self, value):
        return value[1] >= self.limit


class Words(FlatMapFunction):
    def flat_map(self, value):
        yield from value.split()


def words(sentence):
    yield from sentence.split()


@pytest.mark.on_spark((1, "STREAMING"), (4, "BATCH"))
def test_map_filter_flat_map_and_project(env, run):
    readings = env.from_collection(READINGS)
    sentences = env.from_collection(["to be or", "", "not to be"])
    results = run(
        mapped=readings.map(lambda reading: reading[0]),
        mapped_by_object=sentences.map(ToUpper()),
        filtered=readings.filter(lambda reading: reading[1] >= 25),
        filtered_by_object=readings.filter(AtLeast(25)),
        flat=sentences.flat_map(words),
        flat_list=sentences.flat_map(str.split),
        flat_by_object=sentences.flat_map(Words()),
        projected=env.from_collection([("a", 1, 2.0), ("b", 2, 3.0)]).project(2, 0),
    )
    assert sorted(results["mapped"]) == ["sensor_1", "sensor_1", "sensor_2", "sensor_3"]
    assert sorted(results["mapped_by_object"]) == ["", "NOT TO BE", "TO BE OR"]
    assert sorted(results["filtered"]) == [("sensor_2", 31.0), ("sensor_3", 25.0)]
    assert sorted(results["filtered_by_object"]) == [("sensor_2", 31.0), ("sensor_3", 25.0)]
    six_words = ["be", "be", "not", "or", "to", "to"]
    assert sorted(results["flat"]) == sorted(results["flat_list"]) == sorted(results["flat_by_object"]) == six_words
    assert sorted(results["projected"]) == [(2.0, "a"), (3.0, "b")]


def test_flat_map_emits_any_number_of_records_for_each_color(env, run):
    copies = {"white": 1, "black": 2, "gray": 0}
    stream = env.from_collection(["white", "gray", "black"]).flat_map(lambda color: [color] * copies[color])
    assert sorted(run(stream)) == ["black", "black", "white"]


def test_flat_map_may_return_none(env, run):
    assert run(env.from_collection([1, 2, 3]).flat_map(lambda n: [n] if n % 2 else None).global_().map(str)) == [
        "1",
        "3",
    ]


def test_one_to_one_edges_keep_the_order(env, run):
    stream = env.from_collection(range(20)).map(lambda n: n * 2).set_parallelism(1)
    chained = stream.filter(lambda n: n % 4 == 0).set_parallelism(1)
    unchained = stream.map(str).set_parallelism(1).disable_chaining().map(int).set_parallelism(1)
    results = run(chained=chained, unchained=unchained)
    assert results == {"chained": list(range(0, 40, 4)), "unchained": list(range(0, 40, 2))}


def test_global_and_chaining_settings_do_not_change_results(env, run):
    env.disable_operator_chaining()
    stream = env.from_collection(range(10)).map(lambda n: n + 1).filter(lambda n: n % 2 == 0).map(lambda n: n * 10)
    assert sorted(run(stream)) == [20, 40, 60, 80, 100]


def test_an_empty_source_gives_nothing(env, run):
    stream = env.from_collection([]).map(lambda n: n / 0)
    assert run(stream) == []


def test_constructor_parameters_of_functions_are_kept(env, run):
    assert sorted(run(env.from_collection(READINGS).filter(AtLeast(30)))) == [("sensor_2", 31.0)]


def test_a_sequence_source_gives_every_number_once(env, run):
    assert sorted(run(env.from_sequence(1, 25).map(lambda n: n))) == list(range(1, 26))


def test_records_can_be_rows_dicts_and_objects(env, run):
    rows = env.from_collection([Row(name="a", count=1), Row(name="b", count=2)])
    results = run(
        rows=rows.map(lambda row: (row["name"], row[1])),
        dicts=env.from_collection([{"n": 1}]).map(lambda record: {**record, "m": 2}),
    )
    assert sorted(results["rows"]) == [("a", 1), ("b", 2)]
    assert results["dicts"] == [{"n": 1, "m": 2}]


class TestPrint:
    """``n> value`` with the 1-based subtask; no prefix at parallelism 1 (rule 4.1)."""

    @pytest.mark.on_spark((4, "STREAMING"), (1, "BATCH"))
    def test_print_has_a_prefix_only_if_there_are_several_subtasks(self, env, variant, capsys):
        env.from_collection(["x"]).map(str).print()
        env.from_collection([("y", 1)]).map(lambda pair: pair).set_parallelism(1).print("named").set_parallelism(1)
        env.execute()
        lines = sorted(capsys.readouterr().out.splitlines())
        first = "x" if variant.parallelism == 1 else f"{lines[0][0]}> x"
        assert lines == sorted([first, "named> ('y', 1)"])
        assert variant.parallelism == 1 or lines[0][0] in "1234"

    def test_print_with_identifier_and_subtask(self, env, variant, capsys):
        env.from_sequence(1, 8).print("id")
        env.execute()
        lines = capsys.readouterr().out.splitlines()
        assert sorted(line.rpartition("> ")[2] for line in lines) == sorted(map(str, range(1, 9)))
        prefixes = {line.rpartition("> ")[0] for line in lines}
        assert prefixes == ({"id"} if variant.parallelism == 1 else {f"id:{n}" for n in (1, 2, 3, 4)})


@pytest.mark.on_spark
def test_execute_and_collect_gives_all_records_or_at_most_the_limit(env):
    stream = env.from_sequence(1, 10).map(lambda n: n * n)
    with stream.execute_and_collect() as records:
        assert sorted(records) == [n * n for n in range(1, 11)]
    few = stream.execute_and_collect(limit=3)
    assert len(few) == 3
    assert set(few) <= {n * n for n in range(1, 11)}


def test_nothing_runs_before_execute(env, run):
    calls = env.from_collection([1]).map(lambda n: n / 0)
    assert calls.get_name() == "Map"
    assert run(env.from_collection([2]).map(str)) == ["2"]  # only what a sink needs is part of the job


PERSON = Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.INT()])


def test_rows_of_a_named_type_have_names_in_the_next_operator(env, run):
    people = env.from_collection([("Ann", 30), ("Bob", 40)], type_info=PERSON)
    older = people.map(lambda person: Row(person.name, person.age + 1), output_type=PERSON)

    assert sorted(run(older.key_by("name").map(lambda person: (person.name, person.as_dict()["age"])))) == [
        ("Ann", 31),
        ("Bob", 41),
    ]


class PeopleAside(ProcessFunction):
    tag = OutputTag("people", PERSON)

    def process_element(self, value, ctx):
        ctx.output(self.tag, Row(value, 1))
        yield self.tag, Row(value, 2)


def test_rows_of_a_side_output_have_the_names_of_its_type(env, run):
    process = env.from_collection(["Ann"]).process(PeopleAside())

    assert run(process.get_side_output(PeopleAside.tag).map(lambda person: (person.name, person.age))) == [
        ("Ann", 1),
        ("Ann", 2),
    ]


class WrongAside(ProcessFunction):
    def process_element(self, value, ctx):
        yield OutputTag("numbers", Types.INT()), value


def test_a_record_that_does_not_fit_the_type_of_its_side_output_is_named(env):
    tag = OutputTag("numbers", Types.INT())
    env.from_collection(["Ann"]).process(WrongAside()).get_side_output(tag).print()

    with pytest.raises(TypeMismatchError, match=r"side output 'numbers'.*INT.*Ann"):
        env.execute()
