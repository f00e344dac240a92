from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.spark.worker_tuning import RELAY_VARIABLE, RelayedStream, parse_relayed

_SOURCES = str(Path(__file__).parents[2] / "src")


def _python(code: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    variables = {**os.environ, "PYTHONPATH": _SOURCES, **environment}
    return subprocess.run([sys.executable, "-c", code], env=variables, capture_output=True, timeout=60, check=True)


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (b"\x1epenstock1:hello\n", (1, "hello\n")),
        (b"\x1epenstock2:a:b\n", (2, "a:b\n")),
        (b"half a JVM line\x1epenstock1:hello\n", (1, "hello\n")),
        (b"\x1epenstock3:hello\n", None),
        (b"24/01/01 WARN something\n", None),
        (b"\n", None),
    ],
)
def test_only_marked_lines_are_the_users(line, found):
    assert parse_relayed(line) == found


def test_a_worker_freezes_what_it_has_imported_once():
    code = """
import gc
from penstock.spark.worker_tuning import tune_worker
tune_worker()
frozen = gc.get_freeze_count()
keep = [[] for _ in range(1000)]
tune_worker()
assert 0 < frozen == gc.get_freeze_count()
"""
    _python(code)


def test_marked_prints_of_a_worker_are_whole_lines():
    code = """
from penstock.spark.worker_tuning import tune_worker
import sys
tune_worker()
print("one", end=" ")
print("two\\nthree")
print("err", file=sys.stderr)
"""
    done = _python(code, **{RELAY_VARIABLE: "1"})
    assert done.stdout == b""
    assert [parse_relayed(line) for line in done.stderr.splitlines(keepends=True)] == [
        (1, "one two\n"),
        (1, "three\n"),
        (2, "err\n"),
    ]


def test_without_a_driver_to_relay_to_prints_go_where_they_went():
    done = _python("from penstock.spark.worker_tuning import tune_worker; tune_worker(); print('plain')")
    assert done.stdout == b"plain\n"


def test_a_relayed_stream_behaves_as_a_text_stream():
    stream = RelayedStream(1)
    assert stream.writable()
    assert stream.encoding == "utf-8"
    assert stream.write("no newline yet") == 14
    stream.flush()
