"""Sensor readings into Cassandra: tuples by a query, dataclasses without one, and rows through a write-ahead log.

python examples/connectors/cassandra_tables.py                    # with a Cassandra of its own (needs Maven)
python examples/connectors/cassandra_tables.py --host localhost   # the tables are made in the keyspace "example"
"""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from dataclasses import dataclass

from penstock.common import Types
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.connectors.cassandra import CassandraSink, ClusterBuilder, MapperOptions, column, table
from penstock.testing.cassandra_server import CassandraServer

READINGS = [("sensor_1", 68.5), ("sensor_2", 71.0), ("sensor_1", 69.0), ("sensor_3", 74.5), ("sensor_2", 70.5)]
SCHEMA = [
    "CREATE KEYSPACE IF NOT EXISTS example WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    "CREATE TABLE IF NOT EXISTS example.sensors (sensorId text PRIMARY KEY, temperature double)",
    "CREATE TABLE IF NOT EXISTS example.highest (sensorId text PRIMARY KEY, temperature double)",
    "CREATE TABLE IF NOT EXISTS example.alerts (sensorId text, t double, PRIMARY KEY (sensorId, t))",
]


@table("highest", keyspace="example")
@dataclass(frozen=True)
class Highest:
    """An object for each row of the table."""

    sensor_id: str = column("sensorId")
    temperature: float


def define(env: StreamExecutionEnvironment, host: str, port: int) -> None:
    """The job: one stream, three tables."""
    readings = env.from_collection(READINGS, Types.TUPLE([Types.STRING(), Types.DOUBLE()]))
    by_sensor = readings.key_by(lambda reading: reading[0])

    latest = by_sensor.reduce(lambda _, new: new)
    query = "INSERT INTO example.sensors (sensorId, temperature) VALUES (?, ?)"
    latest.sink_to(CassandraSink.sink(query, host=host, port=port)).name("latest")

    highest = by_sensor.reduce(lambda a, b: max(a, b, key=lambda reading: reading[1]))
    objects = highest.map(lambda reading: Highest(*reading))
    objects.sink_to(CassandraSink.sink(host=host, port=port, mapper_options=MapperOptions(ttl=86_400))).name("highest")

    alerts = readings.filter(lambda reading: reading[1] > 70.0)
    builder = CassandraSink.add_sink(alerts).set_cluster_builder(ClusterBuilder(contact_points=[host], port=port))
    builder.set_query("INSERT INTO example.alerts (sensorId, t) VALUES (?, ?)")
    builder.enable_write_ahead_log().build().name("alerts")


def show(builder: ClusterBuilder) -> list[str]:
    """What is in the tables."""
    with builder.build_cluster() as cluster:
        session = cluster.connect()
        lines = []
        for name in ("sensors", "highest", "alerts"):
            rows = session.execute(f"SELECT * FROM example.{name}")  # noqa: S608 - one of ours
            lines += [f"{name:<8} {sensor} {temperature}" for sensor, temperature in sorted(rows)]
        return lines


def main(arguments: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--host", help="where a Cassandra is; without it one is started")
    parser.add_argument("--port", type=int, default=9042)
    options = parser.parse_args(arguments)
    with ExitStack() as stack:
        host, port = options.host, options.port
        if host is None:
            server = stack.enter_context(CassandraServer())
            host, port = server.host, server.port
        builder = ClusterBuilder(contact_points=[host], port=port)
        with builder.build_cluster() as cluster:
            session = cluster.connect()
            for statement in SCHEMA:
                session.execute(statement)
        env = StreamExecutionEnvironment.get_execution_environment()
        define(env, host, port)
        env.execute("sensors into Cassandra")
        print(*show(builder), sep="\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
