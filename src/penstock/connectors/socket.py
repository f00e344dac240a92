"""Text lines from a socket. Received lines go through a log on the driver, so that a crash loses none."""

from __future__ import annotations

import socket
import threading
from typing import Any

from penstock.common.errors import InvalidProgramError, JobExecutionError
from penstock.core.source import Boundedness, Source, SourceReader, SourceSplit, SplitEnumerator
from penstock.runtime.source.receive_log import ReceiveLog
from penstock.runtime.source.received_source import RECORD, ReceivedReader, ReceiverEnumerator, SimpleReceiver

_CHUNK = 1 << 16
_RETRY_SECONDS = 0.5


class SocketTextSource(Source):
    r"""Reads lines of text from a TCP server. The stream ends when the server closes the connection.

    :param max_retries: how often to reconnect after a refused or lost connection; -1 forever, 0 never
    """

    def __init__(self, hostname: str, port: int, delimiter: str = "\n", max_retries: int = 0) -> None:
        if not 0 < port < 65536:
            raise InvalidProgramError(f"a socket source needs a port from 1 to 65535, got {port}")
        if not delimiter:
            raise InvalidProgramError("a socket source needs a delimiter between records")
        self._hostname = hostname
        self._port = port
        self._delimiter = delimiter
        self._max_retries = max_retries

    spreads = True

    def get_boundedness(self) -> Boundedness:
        """Return unbounded, although the stream may end."""
        return Boundedness.CONTINUOUS_UNBOUNDED

    @property
    def may_end(self) -> bool:
        """Return True: the server can close the connection."""
        return True

    def create_enumerator(self, parallelism: int) -> SplitEnumerator:
        """Create an enumerator with one receiver, for one connection."""
        name = f"Socket {self._hostname}:{self._port}"
        return ReceiverEnumerator(name, 1, lambda _: SimpleReceiver(self._receive))

    def create_reader(self) -> SourceReader:
        """Create a reader of the received lines."""
        return ReceivedReader()

    def initial_offset(self, split: SourceSplit) -> Any:
        """Return the position of the first element."""
        return 0

    def _receive(self, log: ReceiveLog, stop: threading.Event) -> None:
        attempts = 0
        while not stop.is_set():
            try:
                with socket.create_connection((self._hostname, self._port), timeout=10) as connection:
                    connection.settimeout(0.2)
                    self._receive_lines(connection, log, stop)
            except OSError as error:
                problem: str | None = f"cannot read from {self._hostname}:{self._port}: {error}"
            else:
                problem = None
            if stop.is_set() or (problem is None and self._max_retries == 0):
                return
            if attempts == self._max_retries:
                if problem is None:
                    return
                raise JobExecutionError(f"{problem}; is a server listening there (for example, 'nc -lk {self._port}')?")
            attempts += 1
            stop.wait(_RETRY_SECONDS)

    def _receive_lines(self, connection: socket.socket, log: ReceiveLog, stop: threading.Event) -> None:
        delimiter = self._delimiter.encode()
        rest = b""
        while not stop.is_set():
            try:
                chunk = connection.recv(_CHUNK)
            except TimeoutError:
                continue
            if not chunk:
                break
            *lines, rest = (rest + chunk).split(delimiter)
            log.extend([(RECORD, _text(line, delimiter), None) for line in lines])
        if rest:
            log.append((RECORD, _text(rest, delimiter), None))


def _text(line: bytes, delimiter: bytes) -> str:
    if delimiter == b"\n" and line.endswith(b"\r"):
        line = line[:-1]
    return line.decode("utf-8", "replace")
