"""Rows into a database, where a key is written again and again (ch. 8).

The book's database is Cassandra, where every write is an upsert. Here it is any database with `INSERT ... ON CONFLICT`;
the programs bring a SQLite file.
"""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from showcase import Showcase

from penstock.common import Row, Types
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.connectors.jdbc import JdbcConnectionOptions, JdbcSink

book = Showcase(__doc__)

TABLE = "CREATE TABLE sensors (sensor_id VARCHAR(20) PRIMARY KEY, temperature DOUBLE PRECISION)"  # 8-6
SENSOR = Types.ROW_NAMED(["sensor_id", "temperature"], [Types.STRING(), Types.DOUBLE()])
READINGS = [("sensor_1", 68.5), ("sensor_2", 71.0), ("sensor_1", 69.0), ("sensor_3", 74.5), ("sensor_2", 70.5)]


@dataclass(frozen=True)
class SensorTemperature:
    """An object for each row of the table: the fields are the columns."""

    sensor_id: str
    temperature: float


def new_database() -> tuple[JdbcConnectionOptions, Callable[[], list[Any]]]:
    """A database with the table, and a way to look into it at the end."""
    directory = tempfile.mkdtemp(prefix="penstock-example-")
    file = Path(directory) / "sensors.db"
    with contextlib.closing(sqlite3.connect(file)) as database:
        database.execute(TABLE)

    def rows() -> list[Any]:
        with contextlib.closing(sqlite3.connect(file)) as database:
            found = database.execute("SELECT sensor_id, temperature FROM sensors ORDER BY sensor_id").fetchall()
        shutil.rmtree(directory)
        return found

    url = f"jdbc:sqlite:{file}"
    return JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url(url).build(), rows


@book.example("8-7", "Tuples into a table")
def write_tuples(env: StreamExecutionEnvironment) -> dict[str, Callable[[], list[Any]]]:
    """A statement with a place for each field. After a failure rows are written again, and the table is right."""
    connection, rows = new_database()
    upsert = (
        "INSERT INTO sensors (sensor_id, temperature) VALUES (?, ?) "
        "ON CONFLICT (sensor_id) DO UPDATE SET temperature = excluded.temperature"
    )
    readings = env.from_collection(READINGS, Types.TUPLE([Types.STRING(), Types.DOUBLE()]))
    readings.key_by(lambda one: one[0]).reduce(lambda _, new: new).sink_to(JdbcSink.sink(upsert, SENSOR, connection))
    return {"sensors": rows}


@book.example("8-9", "Objects into a table")
def write_objects(env: StreamExecutionEnvironment) -> dict[str, Callable[[], list[Any]]]:
    """No statement: the table, the columns and the key say it all. The highest temperature of each sensor stays."""
    connection, rows = new_database()
    objects = env.from_collection([SensorTemperature(*one) for one in READINGS])
    highest = objects.key_by(lambda one: one.sensor_id).reduce(lambda a, b: max(a, b, key=lambda one: one.temperature))
    as_rows = highest.map(lambda one: Row(one.sensor_id, one.temperature), output_type=SENSOR)
    as_rows.sink_to(JdbcSink.upsert_sink("sensors", SENSOR, ["sensor_id"], connection))
    return {"sensors": rows}


if __name__ == "__main__":
    raise SystemExit(book.main())
