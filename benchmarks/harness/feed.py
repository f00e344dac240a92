"""The live source of the latency job: a process that sends lines on a socket at a steady rate.

    python -m benchmarks.harness.feed --port-file F --rate 1000 --seconds 50

It listens on a free port, writes its number to the port file, and starts when the job connects.
"""

from __future__ import annotations

import argparse
import contextlib
import socket
import time
from pathlib import Path


def feed(connection: socket.socket, *, rate: int, seconds: float, keys: int) -> None:
    """Send `key,sent_ns,value` lines, one at a time, each at its own moment.

    A late wake-up is made good by sending what is due at once; each line still carries the moment of its own sending.
    """
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    start = time.perf_counter()
    for n in range(int(rate * seconds)):
        wait = start + n / rate - time.perf_counter()
        if wait > 0:
            time.sleep(wait)
        connection.sendall(f"{n * 7919 % keys},{time.time_ns()},{n}.5\n".encode())


def main() -> None:
    """Serve one job."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port-file", type=Path, required=True)
    parser.add_argument("--rate", type=int, default=1_000)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--keys", type=int, default=100)
    args = parser.parse_args()
    with socket.create_server(("127.0.0.1", 0)) as server:
        written = args.port_file.with_suffix(".tmp")
        written.write_text(str(server.getsockname()[1]))
        written.replace(args.port_file)
        server.settimeout(300)
        connection, _ = server.accept()
        with connection, contextlib.suppress(ConnectionError):  # the job may end first
            feed(connection, rate=args.rate, seconds=args.seconds, keys=args.keys)


if __name__ == "__main__":
    main()
