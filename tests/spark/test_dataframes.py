"""DataFrames as sources and sinks: every reader and writer of Spark can be used."""

import json

import pytest

from penstock.common import Row, Time, Types, WatermarkStrategy
from penstock.common.errors import InvalidProgramError
from penstock.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from penstock.datastream.window import TumblingEventTimeWindows

pytestmark = pytest.mark.spark


@pytest.fixture
def env(spark):
    return StreamExecutionEnvironment(spark=spark).set_parallelism(2)


def collected(stream):
    return sorted(stream.execute_and_collect())


@pytest.mark.parametrize("mode", ["AUTOMATIC", "BATCH"])
def test_a_batch_dataframe_is_a_bounded_source_of_rows(env, spark, mode):
    env.set_runtime_mode(RuntimeExecutionMode[mode])
    frame = spark.createDataFrame([("a", 1), ("b", 2), ("a", 3)], "name string, amount int")
    summed = env.from_dataframe(frame).map(lambda row: (row["name"], row.amount)).key_by(0).sum(1)
    assert collected(summed) == [("a", 4), ("b", 2)]


def test_a_batch_dataframe_in_a_streaming_job_ends_and_lets_time_go_on(env, spark):
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda row, _: row.ts)
    frame = spark.createDataFrame([("a", 1_000), ("b", 2_000), ("a", 11_000)], "name string, ts long")
    rows = env.from_dataframe(frame, strategy).map(lambda row: (row.name, 1))
    others = env.from_collection([("x", 1)])
    counts = rows.union(others).key_by(0).sum(1)
    assert collected(counts) == [("a", 1), ("a", 2), ("b", 1), ("x", 1)]
    windows = rows.key_by(0).window(TumblingEventTimeWindows.of(Time.seconds(10))).sum(1)
    assert collected(windows) == [("a", 1), ("a", 1), ("b", 1)]


def test_rows_of_a_streaming_dataframe_beside_another_source(env, spark, tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    for number in range(3):
        (data / f"{number}.json").write_text(json.dumps({"id": f"s{number}", "ts": number * 100}))
    frame = spark.readStream.schema("id string, ts long").option("maxFilesPerTrigger", 1).json(str(data))
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda row: row.ts)
    rows = env.from_dataframe(frame, strategy).map(lambda row: (row.id, row.ts))
    others = env.from_collection([("x", 1)])
    both = rows.union(others).key_by(0).map(lambda pair: pair)
    found = []
    with both.execute_and_collect() as records:  # the files never end, so the job is cancelled
        for record in records:
            found.append(record)
            if len(found) == 4:
                break
    assert sorted(found) == [("s0", 0), ("s1", 100), ("s2", 200), ("x", 1)]


def test_the_rate_source_of_spark_is_a_source_without_gaps_or_duplicates(env, spark):
    frame = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 7).option("numPartitions", 2).load()
    values = env.from_dataframe(frame).map(lambda row: row.value).key_by(lambda n: n % 3).map(lambda n: n)
    found = []
    with values.execute_and_collect() as records:  # the rate never ends, so the job is cancelled
        for record in records:
            found.append(record)
            if len(found) == 35:
                break
    assert sorted(found) == list(range(35))


def test_a_stream_of_a_batch_job_becomes_a_batch_dataframe(env):
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    stream = env.from_sequence(1, 5).map(lambda n: (n, str(n)))
    frame = stream.to_dataframe("n long, text string")
    assert sorted(map(tuple, frame.filter("n > 2").collect())) == [(3, "3"), (4, "4"), (5, "5")]


def test_a_streaming_dataframe_can_be_written_by_spark(env, spark, tmp_path):
    typed = Types.ROW_NAMED(["id", "total"], [Types.STRING(), Types.INT()])
    stream = env.from_collection([("a", 1), ("a", 2)]).key_by(0).sum(1).map(lambda r: Row(*r), output_type=typed)
    frame = stream.to_dataframe()
    assert frame.isStreaming
    assert frame.columns == ["id", "total"]
    query = (
        frame.writeStream.format("json")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .start(str(tmp_path / "out"))
    )
    try:
        query.processAllAvailable()
    finally:
        query.stop()
    assert sorted(map(tuple, spark.read.json(str(tmp_path / "out")).collect())) == [("a", 1), ("a", 3)]


def test_a_stream_without_types_needs_a_schema(env):
    with pytest.raises(InvalidProgramError, match=r"to_dataframe\(\) on 'Map' needs a schema"):
        env.from_collection([1]).map(str).to_dataframe()


def test_what_is_no_dataframe_is_refused(env):
    with pytest.raises(InvalidProgramError, match=r"from_dataframe\(\) takes a Spark DataFrame, got \[1\]"):
        env.from_dataframe([1])
