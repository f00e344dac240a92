"""Random queries over random tables add up to the rows that DuckDB has for the same text. No JVM is needed.

DuckDB has neither windows as table functions nor Flink's averages of whole numbers; queries with these are left out.
"""

import random

import duckdb
import pytest
import random_sql
from sql_results import results, shown
from tests.table.conftest import table_environment

pytestmark = pytest.mark.exhaustive

LEFT_OUT = ("AVG(", "DESCRIPTOR(")


def expected(connection, query):
    """DuckDB's rows. Its operator for the division of whole numbers is another one."""
    rows = connection.execute(query.replace(" / ", " // ")).fetchall()
    return sorted(str([shown(part) for part in row]) for row in rows)


def load(connection, tables):
    for name, (columns, content) in tables.items():
        declared = columns.partition(", WATERMARK")[0].replace("TIMESTAMP(3)", "TIMESTAMP")
        connection.execute(f"CREATE TABLE {name} ({declared})")
        rows = [
            [None if field == random_sql.NULL else field for field in line.split(",")] for line in content.splitlines()
        ]
        connection.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(rows[0]))})", rows)


@pytest.mark.parametrize("seed", range(3))
def test_random_queries_add_up_to_what_duckdb_says(seed, tmp_path):
    rng = random.Random(seed)
    tables = random_sql.tables(rng)
    for name, (_, content) in tables.items():
        (tmp_path / f"{name}.csv").write_text(content, encoding="utf-8")
    connection = duckdb.connect()
    connection.execute("SET default_null_order = 'sqlite'")  # as in Flink, NULL is the lowest value
    load(connection, tables)
    queries = [one for one in random_sql.queries(rng, 60) if not any(word in one for word in LEFT_OUT)]
    columns = {name: declared for name, (declared, _) in tables.items()}
    found = results(table_environment(), {"directory": str(tmp_path), "tables": columns, "queries": queries})
    for query, rows in zip(queries, found, strict=True):
        assert rows == expected(connection, query), query
    assert sum(map(bool, found)) > len(queries) / 2
