"""Servers for tests: they end with their directory, also when they did not start."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.testing.server import TemporaryServer, end, free_ports


class Server(TemporaryServer):
    """A program that waits to be killed."""

    def __init__(self, program="import signal; signal.pause()"):
        self.program = program
        self.process = None

    def _start(self):
        self.process = self._launch("server", [sys.executable, "-c", self.program])

    def _stop(self):
        end(self.process)


class BrokenServer(Server):
    def _start(self):
        super()._start()
        raise RuntimeError("does not answer")


def test_a_server_runs_in_its_directory_and_both_are_gone_at_the_end():
    with Server() as server:
        directory = server.directory
        assert (directory / "server.log").exists()
        assert server.process.poll() is None
    assert not directory.exists()
    assert server.process.poll() is not None


def test_a_server_that_does_not_start_leaves_nothing():
    server = BrokenServer()
    with pytest.raises(RuntimeError, match="does not answer"):
        server.start()
    assert server.process.poll() is not None
    assert not server.directory.exists()


def test_a_server_that_was_never_started_can_be_stopped_and_removes_nothing(tmp_path, monkeypatch):
    (tmp_path / "precious").touch()
    monkeypatch.chdir(tmp_path)
    Server().stop()
    assert (tmp_path / "precious").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing ends a process with its parent")
def test_a_server_ends_with_the_tests_that_are_killed(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        server = f"import signal, socket; s = socket.create_connection(('127.0.0.1', {port})); signal.pause()"
        start = f"from test_server import Server; Server({server!r}).start(); import signal; signal.pause()"
        here = {**os.environ, "PYTHONPATH": str(Path(__file__).parent), "TMPDIR": str(tmp_path)}
        tests = subprocess.Popen([sys.executable, "-c", start], env=here)
        connection, _ = listening.accept()
        end(tests)
        with connection:
            assert connection.recv(1) == b""  # the system closes what a process leaves open


def test_free_ports_are_all_different():
    assert len(set(free_ports(20))) == 20
