"""The connector filesystem and its formats (T120, T123, T124)."""

import datetime as dt
from decimal import Decimal

import pytest
from tests.table.conftest import Queries, table_environment

from penstock.common.errors import PenstockError
from penstock.table import DataTypes, Schema, TableDescriptor
from penstock.table.expressions import col
from penstock.util.exceptions import TableException, ValidationException

FORMATS = ["csv", "json", "parquet", "avro"]
COLUMNS = "id INT, name STRING, price DECIMAL(8, 2), ok BOOLEAN, ratio DOUBLE, day_ DATE, at TIMESTAMP(3)"
ROWS = """(1, 'a"b,c', 1.50, TRUE, 0.5, DATE '2024-02-29', TIMESTAMP '2024-02-29 12:00:00.123'),
          (2, CAST(NULL AS STRING), CAST(NULL AS DECIMAL(8, 2)), CAST(NULL AS BOOLEAN), CAST(NULL AS DOUBLE),
           CAST(NULL AS DATE), CAST(NULL AS TIMESTAMP(3)))"""


def create(t_env, name, path, format_, columns=COLUMNS, extra="", partitions=""):
    t_env.execute_sql(
        f"CREATE TABLE {name} ({columns}) {partitions} "
        f"WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = '{format_}' {extra})"
    )


@pytest.mark.parametrize("format_", FORMATS)
def test_rows_of_all_types_come_back_from_files(sql, tmp_path, format_):
    if format_ == "avro":
        pytest.importorskip("fastavro")
    create(sql.t_env, "f", tmp_path / "out", format_, extra=", 'csv.null-literal' = 'n/a'" if format_ == "csv" else "")
    sql.t_env.execute_sql(f"INSERT INTO f VALUES {ROWS}").wait()
    first, second = sorted(sql.rows("SELECT * FROM f"))
    moment = dt.datetime(2024, 2, 29, 12, 0, 0, 123000)
    assert first == (1, 'a"b,c', Decimal("1.50"), True, 0.5, dt.date(2024, 2, 29), moment)
    assert second == (2, None, None, None, None, None, None)


@pytest.mark.parametrize("format_", ["csv", "json", "parquet"])
def test_partitions_are_directories_and_come_back_as_columns(sql, tmp_path, format_):
    path = tmp_path / "out"
    create(sql.t_env, "f", path, format_, "id INT, d DATE, k STRING", partitions="PARTITIONED BY (d, k)")
    sql.t_env.execute_sql(
        "INSERT INTO f VALUES (1, DATE '2024-01-01', 'a'), (2, DATE '2024-01-02', 'x/y'), (3, DATE '2024-01-02', NULL)"
    ).wait()
    directories = sorted(str(one.parent.relative_to(path)) for one in path.rglob("part-*"))
    assert directories == ["d=2024-01-01/k=a", "d=2024-01-02/k=__DEFAULT_PARTITION__", "d=2024-01-02/k=x%2Fy"]
    assert sorted(sql.rows("SELECT id, d, k FROM f")) == [
        (1, dt.date(2024, 1, 1), "a"),
        (2, dt.date(2024, 1, 2), "x/y"),
        (3, dt.date(2024, 1, 2), None),
    ]


def test_t123_a_partition_clause_fixes_a_partition(sql, tmp_path):
    create(sql.t_env, "f", tmp_path, "json", "id INT, k STRING", partitions="PARTITIONED BY (k)")
    sql.t_env.execute_sql("INSERT INTO f PARTITION (k = 'z') SELECT 7").wait()
    assert sql.rows("SELECT k, id FROM f") == [("z", 7)]


def test_metadata_columns_of_files(sql, tmp_path):
    (tmp_path / "a.csv").write_text("1\n2\n")
    create(sql.t_env, "f", tmp_path, "csv", "id INT, f STRING METADATA FROM 'file.name' VIRTUAL")
    assert sql.rows("SELECT f, id FROM f") == [("a.csv", 1), ("a.csv", 2)]


def test_a_monitored_directory_is_unbounded(batch, tmp_path):
    create(batch.t_env, "f", tmp_path, "csv", "id INT", ", 'source.monitor-interval' = '1 s'")
    with pytest.raises(TableException, match="unbounded table"):
        batch.rows("SELECT * FROM f")


def test_t124_a_file_takes_inserts_only(sql, tmp_path):
    sql.table("t", ["k"], ("a",), ("a",))
    create(sql.t_env, "f", tmp_path, "json", "k STRING, c BIGINT")
    with pytest.raises(TableException, match="doesn't support consuming update"):
        sql.t_env.execute_sql("INSERT INTO f SELECT k, COUNT(*) FROM t GROUP BY k")


def test_a_file_of_debezium_messages_takes_and_gives_changes(sql, tmp_path):
    sql.table("t", ["k"], ("a",), ("a",))
    create(sql.t_env, "f", tmp_path / "out", "debezium-json", "k STRING, c BIGINT")
    sql.t_env.execute_sql("INSERT INTO f SELECT k, COUNT(*) FROM t GROUP BY k").wait()
    assert sql.changelog("SELECT * FROM f") == [("+I", "a", 1), ("-D", "a", 1), ("+I", "a", 2)]
    assert sql.final("SELECT SUM(c) FROM f") == [(2,)]


def test_batch_mode_reads_and_writes_files(batch, tmp_path):
    create(batch.t_env, "f", tmp_path / "out", "parquet", "id INT")
    batch.t_env.execute_sql("INSERT INTO f VALUES (2), (1)").wait()
    assert sorted(batch.rows("SELECT id FROM f")) == [(1,), (2,)]


def test_several_tasks_read_and_write_files(tmp_path):
    sql = Queries(table_environment(parallelism=2))
    create(sql.t_env, "f", tmp_path / "out", "json", "id INT")
    sql.t_env.execute_sql("INSERT INTO f VALUES (1), (2), (3)").wait()
    assert sorted(sql.rows("SELECT id FROM f")) == [(1,), (2,), (3,)]


def test_a_descriptor_names_connector_format_and_options(sql, tmp_path):
    (tmp_path / "in.csv").write_text("1;x\n")
    descriptor = (
        TableDescriptor.for_connector("filesystem")
        .schema(Schema.new_builder().column("id", DataTypes.INT()).column("s", DataTypes.STRING()).build())
        .option("path", str(tmp_path))
        .option("format", "csv")
        .option("csv.field-delimiter", ";")
        .build()
    )
    sql.t_env.create_temporary_table("f", descriptor)
    assert sql.rows(sql.t_env.from_path("f").select(col("s"), col("id"))) == [("x", 1)]


# -- formats ----------------------------------------------------------------------------------------------------------


def test_csv_options(sql, tmp_path):
    (tmp_path / "in.csv").write_text("# a comment\n1|'x|y'|p+q\n2|NIL|\n")
    options = """, 'csv.field-delimiter' = '|', 'csv.quote-character' = '''', 'csv.allow-comments' = 'true',
                 'csv.null-literal' = 'NIL', 'csv.array-element-delimiter' = '+'"""
    create(sql.t_env, "f", tmp_path, "csv", "id INT, s STRING, a ARRAY<STRING>", options)
    assert sql.rows("SELECT * FROM f") == [(1, "x|y", ["p", "q"]), (2, None, None)]


def test_a_line_that_does_not_fit_fails_the_job_or_is_left_out(sql, tmp_path):
    (tmp_path / "in.csv").write_text("1\nx\n2\n")
    create(sql.t_env, "strict", tmp_path, "csv", "id INT")
    with pytest.raises(PenstockError, match="column 'id'"):
        sql.rows("SELECT * FROM strict")
    create(sql.t_env, "lenient", tmp_path, "csv", "id INT", ", 'csv.ignore-parse-errors' = 'true'")
    assert sql.rows("SELECT * FROM lenient") == [(1,), (2,)]


def test_json_nested_values_and_missing_fields(sql, tmp_path):
    (tmp_path / "in.json").write_text(
        '{"r": {"x": 1, "y": [1.5, null]}, "m": {"k": 2}, "at": "2024-01-01T00:00:00Z"}\n{}\n'
    )
    columns = "r ROW<x INT, y ARRAY<DOUBLE>>, m MAP<STRING, BIGINT>, at TIMESTAMP_LTZ(3)"
    create(sql.t_env, "f", tmp_path, "json", columns)
    assert sql.rows("SELECT r.x, r.y, m['k'], at FROM f") == [
        (1, [1.5, None], 2, dt.datetime(2024, 1, 1, tzinfo=dt.UTC)),
        (None, None, None, None),
    ]
    create(sql.t_env, "strict", tmp_path, "json", columns, ", 'json.fail-on-missing-field' = 'true'")
    with pytest.raises(PenstockError, match="Could not find field with name 'r'"):
        sql.rows("SELECT * FROM strict")


def test_json_writes_times_by_the_standard_that_is_set(sql, tmp_path):
    for number, option in enumerate(("SQL", "ISO-8601")):
        create(
            sql.t_env,
            f"f{number}",
            tmp_path / option,
            "json",
            "at TIMESTAMP(3), v INT",
            f", 'json.timestamp-format.standard' = '{option}', 'json.encode.ignore-null-fields' = 'true'",
        )
        sql.t_env.execute_sql(
            f"INSERT INTO f{number} VALUES (TIMESTAMP '2024-01-01 10:00:00.5', CAST(NULL AS INT))"
        ).wait()
    written = [next((tmp_path / option).glob("part-*")).read_text() for option in ("SQL", "ISO-8601")]
    assert written == ['{"at":"2024-01-01 10:00:00.5"}\n', '{"at":"2024-01-01T10:00:00.5"}\n']


def test_debezium_canal_and_maxwell_messages_become_changes(sql, tmp_path):
    messages = {
        "debezium-json": [
            '{"before": null, "after": {"id": 1, "v": "a"}, "op": "r"}',
            '{"before": {"id": 1, "v": "a"}, "after": {"id": 1, "v": "b"}, "op": "u"}',
            '{"before": {"id": 1, "v": "b"}, "after": null, "op": "d"}',
        ],
        "canal-json": [
            '{"data": [{"id": "1", "v": "a"}], "type": "INSERT"}',
            '{"data": [{"id": "1", "v": "b"}], "old": [{"v": "a"}], "type": "UPDATE"}',
            '{"data": [{"id": "1", "v": "b"}], "type": "DELETE"}',
        ],
        "maxwell-json": [
            '{"data": {"id": 1, "v": "a"}, "type": "insert"}',
            '{"data": {"id": 1, "v": "b"}, "old": {"v": "a"}, "type": "update"}',
            '{"data": {"id": 1, "v": "b"}, "type": "delete"}',
        ],
    }
    for format_, lines in messages.items():
        path = tmp_path / format_
        path.mkdir()
        (path / "in").write_text("\n".join(lines))
        name = format_.replace("-", "_")
        create(sql.t_env, name, path, format_, "id INT, v STRING")
        assert sql.changelog(f"SELECT * FROM {name}") == [
            ("+I", 1, "a"),
            ("-U", 1, "a"),
            ("+U", 1, "b"),
            ("-D", 1, "b"),
        ]


def test_debezium_without_before_says_what_to_set(sql, tmp_path):
    (tmp_path / "in").write_text('{"before": null, "after": {"id": 1}, "op": "u"}')
    create(sql.t_env, "f", tmp_path, "debezium-json", "id INT")
    with pytest.raises(PenstockError, match="REPLICA IDENTITY FULL"):
        sql.rows("SELECT * FROM f")


# -- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("'connector' = 'filesystem', 'format' = 'csv'", "required options are missing .*: path"),
        ("'connector' = 'filesystem', 'path' = '/tmp'", "has no option 'format'"),
        ("'connector' = 'filesystem', 'path' = '/tmp', 'format' = 'xml'", "any format 'xml'.*Known formats: avro"),
        ("'connector' = 'filesystem', 'path' = '/tmp', 'format' = 'csv', 'csv.x' = '1'", "'csv' .*: csv.x"),
        ("'connector' = 'filesystem', 'path' = '/tmp', 'format' = 'csv', 'pth' = '1'", "Unsupported options .*: pth"),
        ("'connector' = 'filesystem', 'path' = '/no/such/place', 'format' = 'csv'", "does not exist"),
    ],
)
def test_t120_wrong_options_are_rejected_when_the_table_is_used(sql, options, message):
    sql.t_env.execute_sql(f"CREATE TABLE f (id INT) WITH ({options})")
    with pytest.raises(ValidationException, match=message):
        sql.rows("SELECT * FROM f")
