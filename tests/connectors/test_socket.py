"""Lines from a socket: whole lines whatever the packets are, until the server closes the connection."""

import socket
import threading
from contextlib import contextmanager

import pytest

from penstock.common.errors import InvalidProgramError, JobExecutionError

pytestmark = pytest.mark.variants(executors=["warm"], parallelism=[1, 4], modes=["STREAMING"])


@contextmanager
def server(*connections):
    """A port; every connection gets its packets, then it is closed."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve():
            for packets in connections:
                connection, _ = listening.accept()
                with connection:
                    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    for packet in packets:
                        connection.sendall(packet)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listening.getsockname()[1]
        thread.join(60)
        assert not thread.is_alive()


@pytest.mark.on_spark((4, "STREAMING"))
def test_lines_are_whole_and_in_order_whatever_the_packets_are(env_factory):
    with server([b"on", b"e\ntwo\r\nth", b"ree\n", "ü\n".encode()[:1], "ü\n".encode()[1:], b"\n\xff\nlast"]) as port:
        lines = list(env_factory().socket_text_stream("127.0.0.1", port).execute_and_collect())
    assert lines == ["one", "two", "three", "ü", "", "\ufffd", "last"]


def test_records_may_be_divided_by_something_else(env_factory):
    with server([b"a;;b;", b";c\r\n;;"]) as port:
        lines = list(env_factory().socket_text_stream("127.0.0.1", port, ";;").execute_and_collect())
    assert lines == ["a", "b", "c\r\n"]


def test_a_connection_that_is_lost_is_made_again_as_often_as_allowed(env_factory):
    with server([b"one\n"], [b"two\n"]) as port:
        lines = list(env_factory().socket_text_stream("127.0.0.1", port, max_retry=1).execute_and_collect())
    assert lines == ["one", "two"]


def test_without_a_server_the_error_says_where_one_is_missing(env_factory):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(JobExecutionError, match=rf"cannot read from 127.0.0.1:{port}.*is a server listening"):
        list(env_factory().socket_text_stream("127.0.0.1", port).execute_and_collect())


def test_impossible_sockets_are_refused(env_factory):
    with pytest.raises(InvalidProgramError, match="port from 1 to 65535, got 0"):
        env_factory().socket_text_stream("127.0.0.1", 0)
    with pytest.raises(InvalidProgramError, match="needs a delimiter"):
        env_factory().socket_text_stream("127.0.0.1", 80, "")
