"""What PyFlink's connectors need beyond PyFlink: jars, through Maven.

Measured processes find them by environment variables.
"""

from __future__ import annotations

import os
import shutil
import subprocess

KAFKA_JARS = "BENCH_FLINK_KAFKA_JARS"
PARQUET_JARS = "BENCH_FLINK_PARQUET_JARS"

_JARS = {
    # One jar with everything in it.
    KAFKA_JARS: (
        {"k", "m", "m1"},
        "flink-kafka",
        "4.0.1-2.0",
        [("org.apache.flink", "flink-sql-connector-kafka", "4.0.1-2.0")],
    ),
    # Flink's Parquet format needs Hadoop's classes, and these need a class of theirs for their configuration.
    PARQUET_JARS: (
        {"n", "r"},
        "flink-parquet",
        "2.3.0",
        [
            ("org.apache.flink", "flink-sql-parquet", "2.3.0"),
            ("org.apache.hadoop", "hadoop-client-api", "3.4.1"),
            ("org.apache.hadoop", "hadoop-client-runtime", "3.4.1"),
            ("commons-logging", "commons-logging", "1.3.4"),
        ],
    ),
}


def ensure_maven() -> None:
    """Install Maven where it is missing and we may: on Debian and its kin, as root. Else who needs it will complain."""
    if shutil.which("mvn") is None and os.geteuid() == 0 and shutil.which("apt-get") is not None:
        print("installing Maven with apt-get ...", flush=True)
        quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for words in (("update", "-qq"), ("install", "-y", "-qq", "--no-install-recommends", "maven")):
            subprocess.run(["apt-get", *words], check=False, env=quiet, stdout=subprocess.DEVNULL)


def provide(jobs: set[str]) -> None:
    """Fetch the jars that the jobs need, once, and tell where they are."""
    from penstock.testing.maven import maven_jars

    for variable, (users, name, version, artifacts) in _JARS.items():
        if users & jobs:
            directory = maven_jars(name, version, artifacts, transitive=False)
            os.environ[variable] = ";".join(path.as_uri() for path in sorted(directory.glob("*.jar")))
