"""``python -m penstock.cli.fast_start``: makes later starts of an embedded Spark some seconds faster."""

from __future__ import annotations

import contextlib
import io
import sys
import time

from penstock.common import Time, WatermarkStrategy
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.window import TumblingEventTimeWindows
from penstock.spark.class_archive import archive_path, make_archive
from penstock.spark.executor import stop_embedded_session
from penstock.spark.java import ensure_java_home


def main() -> int:
    """Create an archive of the classes that Spark uses, unless it exists."""
    ensure_java_home()
    if archive_path().exists():
        print(f"nothing to do: {archive_path()} exists")
        return 0
    print("creating an archive of Spark's classes (about a minute) ...", flush=True)
    start = time.monotonic()
    path = make_archive(_run_a_job)
    print(f"{path}: {path.stat().st_size >> 20} MB, {time.monotonic() - start:.0f} s")
    return 0


def _run_a_job() -> None:
    """Run a job with the features that most jobs use: state, windows, two exchanges, a checkpoint."""
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    records = env.from_collection([("a", 1), ("b", 2), ("a", 1500)]).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda record, _: record[1])
    )
    (
        records.key_by(lambda record: record[0])
        .window(TumblingEventTimeWindows.of(Time.seconds(1)))
        .reduce(lambda one, other: (one[0], one[1] + other[1]))
        .key_by(lambda record: record[0])
        .reduce(lambda one, other: (one[0], one[1] + other[1]))
        .print()
    )
    with contextlib.redirect_stdout(io.StringIO()):
        env.execute("fast start")
        stop_embedded_session()


if __name__ == "__main__":
    sys.exit(main())
