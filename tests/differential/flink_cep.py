"""Flink's own CEP as an oracle: a Java process that runs the jobs of `tests/cep/cep_jobs.py`."""

import json
import os
import subprocess
import tempfile
from pathlib import Path
from select import select

from penstock.testing.maven import maven_jars

VERSION = "2.3.0"
_SOURCE = Path(__file__).parent / "java" / "CepOracle.java"
_FLINK = "org.apache.flink"
_JARS = [
    *((_FLINK, name, VERSION) for name in ("flink-cep", "flink-streaming-java", "flink-clients")),
    *((_FLINK, name, VERSION, "tests") for name in ("flink-runtime", "flink-core")),  # the harness of an operator
    (_FLINK, "flink-test-utils-junit", VERSION),
    ("org.assertj", "assertj-core", "3.27.3"),
    ("com.fasterxml.jackson.core", "jackson-databind", "2.18.2"),
]


def jars() -> Path:
    """Flink's CEP library and the harness of its tests, through Maven."""
    return maven_jars("flink-cep-oracle", VERSION, _JARS)


class FlinkCep:
    """Answers jobs one after the other; a job that takes too long has no answer."""

    def __init__(self, jars: Path, seconds: float = 20.0) -> None:
        self._classpath = f"{tempfile.mkdtemp()}{os.pathsep}{jars}/*"
        self._seconds = seconds
        self._process: subprocess.Popen[str] | None = None
        target = self._classpath.split(os.pathsep)[0]
        subprocess.run(["javac", "-cp", f"{jars}/*", "-d", target, str(_SOURCE)], check=True, capture_output=True)

    def ask(self, job):
        """The log of a job, None if Flink did not finish it in time."""
        if self._process is None:
            self._process = subprocess.Popen(
                ["java", "-Xmx1g", "-XX:+UseSerialGC", "-cp", self._classpath, "CepOracle"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        if not select([self._process.stdout], [], [], self._seconds)[0]:
            self.close()
            return None
        line = self._process.stdout.readline()
        if not line:
            self.close()
            return None
        return json.loads(line)

    def close(self):
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None
