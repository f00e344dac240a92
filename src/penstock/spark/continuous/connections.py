"""One connection between two processes, plain or encrypted, and how both sides prove that they know the secret.

The secret itself is never sent. Each side sends a random number, and answers that of the other with a digest of both
numbers and the secret. The digest also contains the task that opens the connection, and the start of the stage. After
that, a message is its length and its bytes.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import secrets
import socket
import ssl
import struct
import threading
from dataclasses import dataclass

from penstock.common.errors import JobExecutionError
from penstock.spark.continuous.tls import TlsFiles

__all__ = ["Connection", "Greeting", "Splitter", "TlsConnection", "accept_greeting", "greet", "secured"]

_PIECE = 1 << 18
_LENGTH = struct.Struct("<Q")
_GREETING = struct.Struct("<iq")
_NUMBER = 32
_DIGEST = hashlib.sha256().digest_size


class Connection:
    """A plain connection. One thread receives, any thread may send."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self._sending = threading.Lock()
        self._ahead = b""  # received together with the greeting, if both were encrypted together

    def fileno(self) -> int:
        """Return the file descriptor, for selectors."""
        return self._socket.fileno()

    def set_timeout(self, seconds: float | None) -> None:
        """Set the timeout of all further calls."""
        self._socket.settimeout(seconds)

    def send(self, data: bytes) -> None:
        """Send all data."""
        with self._sending:
            self._socket.sendall(data)

    def send_message(self, data: bytes) -> None:
        """Send a message."""
        self.send(_LENGTH.pack(len(data)) + data)

    def receive(self) -> bytes | None:
        """Return some bytes, possibly none yet, or None at the end."""
        if self._ahead:
            ahead, self._ahead = self._ahead, b""
            return ahead
        return self._receive()

    def _receive(self, limit: int = _PIECE) -> bytes | None:
        return self._socket.recv(limit) or None

    def exactly(self, count: int) -> bytes:
        """Return this many bytes of the greeting."""
        data = b""
        while len(data) < count:
            piece = self.receive() if self._ahead else self._receive(count - len(data))
            if piece is None:
                raise EOFError
            data += piece
        self._ahead = data[count:] + self._ahead
        return data[:count]

    def close(self) -> None:
        """Close the connection. Both sides notice it, including a thread that receives."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


class TlsConnection(Connection):
    """An encrypted connection.

    Python's own TLS sockets do not let one thread receive while another sends. Here only encryption and decryption hold
    a lock, not waiting for the network.
    """

    def __init__(self, connected: socket.socket, context: ssl.SSLContext, *, server: bool) -> None:
        super().__init__(connected)
        self._arrived = ssl.MemoryBIO()
        self._leaving = ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._arrived, self._leaving, server_side=server)
        self._lock = threading.Lock()

    def handshake(self) -> None:
        """Agree on keys, and check the other side's certificate."""
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                self._socket.sendall(self._leaving.read())
                piece = self._socket.recv(_PIECE)
                if not piece:
                    raise EOFError from None
                self._arrived.write(piece)
            except ssl.SSLError:
                with contextlib.suppress(OSError):
                    self._socket.sendall(self._leaving.read())  # tells the other side what is wrong
                raise
            else:
                self._socket.sendall(self._leaving.read())
                return

    def send(self, data: bytes) -> None:
        """Send all data piece by piece, so that little is encrypted in advance."""
        view = memoryview(data)
        with self._sending:
            for start in range(0, len(data), _PIECE):
                with self._lock:
                    self._tls.write(view[start : start + _PIECE])
                    encrypted = self._leaving.read()
                self._socket.sendall(encrypted)

    def _receive(self, limit: int = _PIECE) -> bytes | None:
        """Received data is decrypted completely, so the result may exceed the limit."""
        piece = self._socket.recv(_PIECE)
        if not piece:
            return None
        data = bytearray()
        with self._lock, contextlib.suppress(ssl.SSLWantReadError):
            self._arrived.write(piece)
            while chunk := self._tls.read(_PIECE):
                data += chunk
        return bytes(data)


def secured(connected: socket.socket, files: TlsFiles | None, *, server: bool) -> Connection:
    """Return a connection as configured."""
    if files is None:
        return Connection(connected)
    connection = TlsConnection(connected, files.context(server=server), server=server)
    try:
        connection.handshake()
    except ssl.SSLError as error:
        raise JobExecutionError(
            f"two processes of the continuous mode cannot agree on TLS: {error}. Each checks the certificate of the "
            f"other side against {files.ca}: it must be valid for clients and for servers"
        ) from None
    return connection


@dataclass(frozen=True, slots=True)
class Greeting:
    """Identifies who opens a connection.

    :param generation: increases each time Spark starts the tasks
    """

    task: int
    generation: int


def greet(connection: Connection, secret: bytes, greeting: Greeting) -> None:
    """Open a connection. Raise an error if the other side does not know the secret."""
    theirs, ours = connection.exactly(_NUMBER), secrets.token_bytes(_NUMBER)
    about = _GREETING.pack(greeting.task, greeting.generation)
    connection.send(about + ours + _digest(secret, b"opens", theirs, ours, about))
    if not hmac.compare_digest(connection.exactly(_DIGEST), _digest(secret, b"accepts", ours, theirs, about)):
        raise ConnectionAbortedError("the other side does not know the secret of the job")


def accept_greeting(connection: Connection, secret: bytes) -> Greeting | None:
    """Accept a connection. Return None if the other side does not know the secret."""
    ours = secrets.token_bytes(_NUMBER)
    connection.send(ours)
    about, theirs = connection.exactly(_GREETING.size), connection.exactly(_NUMBER)
    if not hmac.compare_digest(connection.exactly(_DIGEST), _digest(secret, b"opens", ours, theirs, about)):
        return None
    connection.send(_digest(secret, b"accepts", theirs, ours, about))
    return Greeting(*_GREETING.unpack(about))


def _digest(secret: bytes, *parts: bytes) -> bytes:
    return hmac.digest(secret, b"".join(parts), "sha256")


class Splitter:
    r"""Splits received data into messages.

    >>> splitter = Splitter()
    >>> splitter.feed(b"\x02\0\0\0\0\0\0\0ab\x01\0"), splitter.feed(b"\0\0\0\0\0\0c")
    ([b'ab'], [b'c'])
    """

    __slots__ = ("_rest",)

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """Return the messages that are now complete."""
        rest = self._rest
        rest += data
        messages: list[bytes] = []
        start = 0
        while len(rest) - start >= _LENGTH.size:
            end = start + _LENGTH.size + _LENGTH.unpack_from(rest, start)[0]
            if len(rest) < end:
                break
            messages.append(bytes(memoryview(rest)[start + _LENGTH.size : end]))
            start = end
        if start:
            self._rest = rest[start:]
        return messages
