"""Asks a database for the room of each sensor, many questions under way at once.

    python examples/connectors/async_lookup.py

Examples 8-16 and 8-17 of *Stream Processing with Apache Flink*, written afresh for Python. The database is SQLite,
whose client blocks: each question gets a thread.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sqlite3
import tempfile

from penstock.common import Time
from penstock.datastream import AsyncDataStream, DataStream, StreamExecutionEnvironment
from penstock.datastream.functions import AsyncFunction, AsyncRetryStrategy

ROOMS = [("sensor_1", "kitchen"), ("sensor_2", "cellar")]
READINGS = [("sensor_1", 20.5), ("sensor_2", 11.0), ("sensor_9", 33.0), ("sensor_1", 21.0)]


class RoomOfSensor(AsyncFunction[tuple[str, float], tuple[str, float]]):
    """A reading with the room instead of the sensor."""

    def __init__(self, file: str) -> None:
        self.file = file

    async def async_invoke(self, value: tuple[str, float]) -> list[tuple[str, float]]:
        """The answer, when it comes."""
        sensor, temperature = value
        return [(await asyncio.to_thread(self.room_of, sensor), temperature)]

    def room_of(self, sensor: str) -> str:
        """Blocks until the database has answered."""
        with contextlib.closing(sqlite3.connect(self.file)) as database:
            found = database.execute("SELECT room FROM rooms WHERE sensor = ?", (sensor,)).fetchone()
        return found[0] if found else "UNKNOWN ROOM"

    def timeout(self, value: tuple[str, float]) -> list[tuple[str, float]]:
        """Instead of a failure of the job."""
        return [("TOO LATE", value[1])]


def make_database(file: str) -> None:
    """The table of rooms."""
    with contextlib.closing(sqlite3.connect(file)) as database:
        database.execute("CREATE TABLE rooms (sensor TEXT PRIMARY KEY, room TEXT)")
        database.executemany("INSERT INTO rooms VALUES (?, ?)", ROOMS)
        database.commit()


def define(env: StreamExecutionEnvironment, file: str) -> DataStream:
    """The readings with their rooms, in their order."""
    retries = AsyncRetryStrategy.exponential_backoff(
        3, 100, 1_000, 2.0, exception_predicate=lambda error: isinstance(error, sqlite3.OperationalError)
    )
    readings = env.from_collection(READINGS)
    rooms = AsyncDataStream.ordered_wait_with_retry(
        readings, RoomOfSensor(file), timeout=Time.seconds(5), async_retry_strategy=retries, capacity=100
    )
    return rooms.set_parallelism(1)  # each task keeps the order of what it gets


def main() -> None:
    """Runs the job and prints what it finds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--directory", help="where the database is made (default: a temporary directory)")
    file = f"{parser.parse_args().directory or tempfile.mkdtemp()}/rooms.db"
    make_database(file)
    env = StreamExecutionEnvironment.get_execution_environment()
    define(env, file).print()
    env.execute("rooms of readings")


if __name__ == "__main__":
    main()
