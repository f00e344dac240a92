import pytest

from penstock.cli import programs
from penstock.testing import MiniCluster


@pytest.fixture
def program(tmp_path):
    """Writes a program to a file."""

    def write(text, name="job.py"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write


@pytest.fixture
def in_process(monkeypatch):
    """Jobs of programs run in this process instead of on Spark; gives the environments' settings."""
    plain = programs.ExecutionDefaults

    def with_mini_cluster(configuration, **options):
        return plain(configuration, **{"executor": MiniCluster(), **options})

    monkeypatch.setattr("penstock.cli.run.ExecutionDefaults", with_mini_cluster)
