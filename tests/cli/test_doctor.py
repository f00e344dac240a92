"""``penstock doctor``: what it finds, and what it says when something is missing."""

import re
import tomllib
from pathlib import Path

from penstock.cli import doctor
from penstock.cli.main import main
from penstock.common.errors import JobExecutionError

ROOT = Path(__file__).resolve().parents[2]


def test_with_everything_there_the_exit_code_is_0(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(doctor, "find_java", lambda: tmp_path)
    monkeypatch.setattr(doctor, "java_version", lambda home: 21)
    assert main(["doctor"]) == 0
    printed = capsys.readouterr().out
    for subject in ("Python", "Java", "Spark", "pyarrow", "memory", "cores", "connector"):
        assert re.search(rf"^(ok     |-      ) {subject} ", printed, flags=re.MULTILINE), subject
    assert f"21 at {tmp_path}" in printed


def test_a_missing_java_is_an_error_with_a_remedy(capsys, monkeypatch):
    monkeypatch.setattr(doctor, "find_java", lambda: None)
    assert main(["doctor", "--run"]) == 1
    printed = capsys.readouterr().out
    assert re.search(r"^MISSING Java .*\n +-> pip install 'penstock\[java\]'", printed, flags=re.MULTILINE)
    assert printed.endswith("Missing: Java.\n")


def test_a_missing_package_and_a_missing_client_of_a_connector(monkeypatch):
    assert doctor._package("no-such-package").state == "missing"
    found = doctor._connector("Kafka", "penstock.connectors.datagen", "no_such_client", "kafka")
    assert (found.state, found.remedy) == ("note", "pip install 'penstock[kafka]'")
    for module in ("penstock.no.such.module", "penstock.connectors.pulsar"):
        assert "not in this version" in doctor._connector("X", module, None, None).text


def test_memory_is_read_from_the_system(tmp_path):
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal:       1000 kB\nMemFree:  1 kB\nMemAvailable:   400 kB\n")
    assert doctor._memory_bytes(meminfo) == (1_024_000, 409_600)
    total, available = doctor._memory_bytes(tmp_path / "none")
    assert total > 0
    assert available is None


def test_a_job_is_tried_and_its_failure_told():
    assert doctor.try_a_job(lambda: [9, 1, 4]).state == "ok"
    assert "instead of" in doctor.try_a_job(lambda: [1]).text

    def fail():
        raise JobExecutionError("no luck\nand a long story")

    found = doctor.try_a_job(fail)
    assert (found.state, found.text) == ("missing", f"failed: no luck\n{'':27}and a long story")

    def break_down():
        raise ConnectionError("no answer")

    assert doctor.try_a_job(break_down).text == "failed: ConnectionError: no answer"


def test_findings_are_shown_before_a_job_is_tried(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(doctor, "find_java", lambda: tmp_path)
    monkeypatch.setattr(doctor, "java_version", lambda home: 21)
    shown = []

    def small_job():
        shown.append(capsys.readouterr().out)
        return [1, 4, 9]

    monkeypatch.setattr(doctor, "_small_job", small_job)
    assert main(["doctor", "--run"]) == 0
    assert "Python" in shown[0]
    assert re.search(r"^ok      job ", capsys.readouterr().out, flags=re.MULTILINE)


def test_every_extra_for_a_connector_is_looked_at():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    looked_at = {extra for *_, extra in doctor._CONNECTORS if extra is not None}
    assert looked_at == set(extras) - {"java", "service", "sql", "pandas", "zookeeper", "gelly", "bench", "docs", "dev"}


def test_a_machine_that_is_too_busy_is_told_as_such():
    def fail():
        raise JobExecutionError("Python worker failed to connect back.\n=== Streaming Query ===")

    assert "too busy" in doctor.try_a_job(fail).remedy
