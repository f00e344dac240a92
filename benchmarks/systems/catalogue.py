"""The systems by name, as `--systems` takes them."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field

from benchmarks.jobs.catalogue import JOBS
from benchmarks.systems.environment import BYTEWAX, PATHWAY, PYFLINK, QUIX, ROOT, SPARK, Environment
from penstock.spark.java import find_java

_ALL = tuple(JOBS)
_PYFLINK = tuple(name for name in JOBS if name not in {"g", "p", "q8_co_group"})  # no joins of DataStreams, no CEP
_KAFKA = tuple(name for name, job in JOBS.items() if job.uses_kafka)
_OTHER_KAFKA = tuple(name for name in _KAFKA if name != "m1")  # Bytewax's (m) is at least once already
# Jobs with connectors have drivers of their own.
_KAFKA_DRIVERS = {"drive_flink": "drive_kafka", "drive_bytewax": "drive_bytewax_kafka"}
_FILE_DRIVERS = {
    "drive_flink": "drive_files",
    "drive_bytewax": "drive_bytewax_files",
    "drive_pathway": "drive_pathway_files",
}


@dataclass(slots=True, frozen=True)
class System:
    """One way to run the jobs."""

    name: str
    package: str
    variant: str
    jobs: tuple[str, ...]
    driver: str = "drive_flink"
    environment: Environment | None = None  # None: the interpreter that runs the benchmarks
    variables: dict[str, str] = field(default_factory=dict)

    def prepare(self) -> None:
        """Install what is needed."""
        if self.environment is not None:
            self.environment.ensure()

    def command(self, job: str, arguments: list[str]) -> list[str]:
        """The command line of a measured process."""
        python = self.environment.python if self.environment else sys.executable
        special = _KAFKA_DRIVERS if job in _KAFKA else _FILE_DRIVERS if JOBS[job].writes_files else {}
        driver = special.get(self.driver, self.driver)
        return [python, "-m", f"benchmarks.systems.{driver}", *arguments]

    def process_environment(self) -> dict[str, str]:
        """The environment variables of a measured process."""
        paths = [str(ROOT)]
        if self.environment is None:
            paths.append(str(ROOT / "src"))
        elif self.package == "pyflink":
            paths.append(self.environment.site_packages)
        found = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONUNBUFFERED": "1", **self.variables}
        java = find_java()  # it may be a wheel's, which no other system would find
        if java is not None:
            found.setdefault("JAVA_HOME", str(java))
        return found


# Run from a local Python process, PyFlink executes all Python functions inside that one process ("loopback", meant for
# debugging). A cluster starts worker processes: the tuned process mode does the same here, which is faster.
_WORKERS = {"_python_worker_execution_mode": "process"}

SYSTEMS = {
    system.name: system
    for system in (
        System("penstock", "penstock", "default", _ALL),
        System("penstock-continuous", "penstock", "continuous", _ALL),
        System("pyflink", "pyflink", "default", _PYFLINK, environment=PYFLINK),
        System("pyflink-process", "pyflink", "process", _PYFLINK, environment=PYFLINK, variables=_WORKERS),
        System("pyflink-thread", "pyflink", "thread", _PYFLINK, environment=PYFLINK),
        System("flink-java", "flink-java", "default", ("p",), "drive_java"),
        System("bytewax", "bytewax", "default", (*"abcdefgn", *_OTHER_KAFKA), "drive_bytewax", BYTEWAX),
        System("quix", "quix", "default", (*"abcdef", *_OTHER_KAFKA), "drive_quix", QUIX),
        System("pathway", "pathway", "default", tuple("adefgn"), "drive_pathway", PATHWAY),
        System("spark-calls", "spark", "100000-calls", ("b", "c"), "drive_spark", SPARK),
        System("spark", "spark", "100000", ("b", "c"), "drive_spark", SPARK),
        System("spark-20k", "spark", "20000", ("b", "c"), "drive_spark", SPARK),
    )
}
