"""``penstock new``: a small project with a job, its tests, a README and a Dockerfile."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from penstock import __version__
from penstock.common.errors import InvalidProgramError

__all__ = ["new"]

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")

_JOB = '''\
"""NAME: the mean temperature of each sensor and minute."""

import argparse
from dataclasses import dataclass

import penstock as ps


@dataclass
class Reading:
    sensor: str
    at: int  # milliseconds since the epoch
    celsius: float


SAMPLE = [
    Reading("kitchen", 5_000, 20.0),
    Reading("cellar", 12_000, 11.5),
    Reading("kitchen", 48_000, 22.0),
    Reading("kitchen", 65_000, 23.5),
]


def averages(readings: ps.DataStream[Reading]) -> ps.DataStream[tuple[str, float]]:
    """What the job computes, without its sources and sinks, so that tests can call it."""
    return readings.key_by(lambda reading: reading.sensor).window(ps.tumbling(minutes=1)).mean("celsius")


def main() -> None:
    """Describe the job and run it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--input", help="a directory of JSON lines, watched for new files (default: a few samples)")
    options = parser.parse_args()

    env = ps.StreamExecutionEnvironment.get_execution_environment()
    if options.input:
        readings = env.from_source(ps.FileSource(options.input, format=ps.Json(Reading), watch_every="1 s"))
    else:
        readings = env.from_collection(SAMPLE)
    averages(readings.with_event_time("at", max_delay="5 s")).uid("averages").print()
    env.execute("NAME")


if __name__ == "__main__":
    main()
'''

_TEST = '''\
"""Tests of NAME. They run in this process: pytest"""

import sys

import job
from job import Reading, averages

from penstock.testing import given


def test_the_mean_of_a_minute_is_emitted_when_the_minute_ends():
    (
        given(averages)
        .receive(Reading("kitchen", 5_000, 20.0), Reading("kitchen", 48_000, 22.0), at="48 s")
        .at("59 s")
        .expect_nothing()
        .at("1 min")
        .expect(("kitchen", 21.0))
    )


def test_each_sensor_has_its_own_mean():
    scenario = given(averages).receive(Reading("kitchen", 0, 20.0), Reading("cellar", 0, 11.0), at=0)
    scenario.end().expect(("kitchen", 20.0), ("cellar", 11.0), in_any_order=True)


def test_the_program_runs(mini_cluster, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["job.py"])
    job.main()
    assert "('kitchen', 21.0)" in capsys.readouterr().out
'''

_README = """\
# NAME

The mean temperature of each sensor and minute, with Penstock.

```sh
pip install -r requirements.txt
pytest                            # tests, without Java
penstock run job.py               # the job, on an embedded Spark
penstock run job.py --input data  # the same for JSON lines such as {"sensor": "attic", "at": 5000, "celsius": 30.5}
penstock plan job.py              # show the plan
```

Keep the job's state across restarts with a checkpoint directory:

```sh
penstock run -D execution.checkpointing.dir=file:///var/lib/NAME job.py --input data
```

In a container:

```sh
docker build -t NAME .
docker run NAME
```

| file | what it is |
|---|---|
| `job.py` | the job |
| `test_job.py` | its tests |
| `requirements.txt` | what it needs; `penstock[java]` brings a Java runtime |
| `Dockerfile` | an image that runs the job |
"""

_REQUIREMENTS = """\
penstock[java]~=VERSION
pytest>=8
"""

_DOCKERFILE = """\
FROM python:3.12-slim
WORKDIR /job
COPY requirements.txt .
RUN pip install --no-cache-dir -r requirements.txt
COPY job.py .
ENTRYPOINT ["penstock", "run", "job.py"]
"""

_FILES = {
    "job.py": _JOB,
    "test_job.py": _TEST,
    "README.md": _README,
    "requirements.txt": _REQUIREMENTS,
    "Dockerfile": _DOCKERFILE,
}


def new(options: argparse.Namespace) -> int:
    """Write the project, and return the exit code."""
    directory = Path(options.directory)
    name = directory.name
    if not _NAME.fullmatch(name):
        raise InvalidProgramError(
            f"{name!r} is not a valid project name: use letters, digits, _ and -, with a letter in the first place"
        )
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise InvalidProgramError(f"{directory} exists and is not empty: choose another name")
    directory.mkdir(parents=True, exist_ok=True)
    for file, text in _FILES.items():
        (directory / file).write_text(text.replace("NAME", name).replace("VERSION", __version__), encoding="utf-8")
    print(f"{directory}: {', '.join(_FILES)}\n\n  cd {directory}\n  pytest\n  penstock run job.py")
    return 0
