"""Rows into a database, two ways: the latest temperature of each sensor by upsert, every alert exactly once.

    python examples/connectors/database_rows.py [--url jdbc:postgresql://localhost:5432/postgres --user me]

Without --url it writes into a new SQLite file and shows what is in it.
"""

from __future__ import annotations

import argparse
import contextlib
import sqlite3
import tempfile

from penstock.common import Types
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.connectors.jdbc import JdbcConnectionOptions, JdbcSink

READING = Types.ROW_NAMED(["sensor", "temperature"], [Types.STRING(), Types.DOUBLE()])
READINGS = [("sensor_1", 20.5), ("sensor_2", 31.0), ("sensor_1", 33.0), ("sensor_3", 19.0), ("sensor_2", 29.5)]
TABLES = (
    "CREATE TABLE IF NOT EXISTS temperatures (sensor VARCHAR(20) PRIMARY KEY, temperature DOUBLE PRECISION)",
    "CREATE TABLE IF NOT EXISTS alerts (sensor VARCHAR(20), temperature DOUBLE PRECISION)",
)


def define(env: StreamExecutionEnvironment, connection: JdbcConnectionOptions) -> None:
    """The job."""
    readings = env.from_collection(READINGS, READING).key_by(lambda reading: reading[0])
    latest = readings.reduce(lambda _, new: new)
    latest.sink_to(JdbcSink.upsert_sink("temperatures", READING, ["sensor"], connection)).uid("latest")
    alerts = readings.filter(lambda reading: reading[1] > 30.0)
    alerts.sink_to(
        JdbcSink.exactly_once_sink("INSERT INTO alerts (sensor, temperature) VALUES (?, ?)", READING, connection)
    ).uid("alerts")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", help="a database that has the tables `temperatures` and `alerts`")
    parser.add_argument("--user")
    options = parser.parse_args()
    file = f"{tempfile.mkdtemp()}/readings.db"
    builder = JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url(options.url or f"jdbc:sqlite:{file}")
    if options.user:
        builder.with_user_name(options.user)
    if not options.url:
        with contextlib.closing(sqlite3.connect(file)) as database:
            for statement in TABLES:
                database.execute(statement)
    env = StreamExecutionEnvironment.get_execution_environment()
    define(env, builder.build())
    env.execute("readings to database")
    if not options.url:
        with contextlib.closing(sqlite3.connect(file)) as database:
            for table in ("temperatures", "alerts"):
                print(table, sorted(database.execute(f"SELECT * FROM {table}")))  # noqa: S608 - a constant


if __name__ == "__main__":
    main()
