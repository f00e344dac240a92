"""Real servers for tests: started on free ports in temporary directories, stopped with the test."""

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from penstock.testing.server import free_ports


def free_port():
    return free_ports(1)[0]


def program(name):
    """The path of a program; skips the test where it is not installed."""
    found = shutil.which(name)
    versions = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), reverse=True)
    if found is None and not versions:
        pytest.skip(f"{name} is not installed")
    return found or str(versions[0])


def wait_for(condition, process, seconds=60, output=None):
    def said():
        return "" if output is None else f": {output.read_text(errors='replace')[-2000:]}"

    deadline = time.monotonic() + seconds
    while True:
        with contextlib.suppress(Exception):
            if condition():
                return
        assert process.poll() is None, f"the server ended at once{said()}"
        assert time.monotonic() < deadline, f"the server did not come up{said()}"
        time.sleep(0.02)


@contextlib.contextmanager
def running(command, output=None, ends_by=signal.SIGTERM, **options):
    with contextlib.ExitStack() as stack:
        target = subprocess.DEVNULL if output is None else stack.enter_context(output.open("wb"))
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=target, stderr=subprocess.STDOUT, **options
        )
    try:
        yield process
    finally:
        process.send_signal(ends_by)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextlib.contextmanager
def temporary_directory(user):
    """Of that user, below a path that everybody may enter."""
    directory = tempfile.mkdtemp(prefix="penstock-test-")
    try:
        if user is not None:
            os.chown(directory, pwd.getpwnam(user).pw_uid, -1)
        yield Path(directory)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _unprivileged():
    """PostgreSQL does not run as root."""
    if os.getuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name).pw_name
    pytest.skip("PostgreSQL does not run as root, and there is no other user")


@contextlib.contextmanager
def postgresql():
    """The JDBC address of a new PostgreSQL."""
    psycopg = pytest.importorskip("psycopg")
    initdb, server, user = program("initdb"), program("postgres"), _unprivileged()
    with temporary_directory(user) as directory:
        data, options = directory / "data", {} if user is None else {"user": user, "group": pwd.getpwnam(user).pw_gid}
        subprocess.run(
            [initdb, "-D", str(data), "-U", "test", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C"],
            check=True,
            capture_output=True,
            cwd=directory,
            **options,
        )
        port = free_port()
        settings = [
            f"-cport={port}",
            "-clisten_addresses=127.0.0.1",
            f"-cunix_socket_directories={directory}",
            "-cfsync=off",
        ]
        # By SIGTERM it would wait for its clients, and some tests leave connections to the garbage collector.
        with running([server, "-D", str(data), *settings], ends_by=signal.SIGINT, cwd=directory, **options) as process:
            address = f"host=127.0.0.1 port={port} user=test dbname=postgres"

            def answers():
                psycopg.connect(address).close()
                return True

            wait_for(answers, process)
            yield f"jdbc:postgresql://127.0.0.1:{port}/postgres?user=test"


@contextlib.contextmanager
def redis_server(port=None):
    """The address of a new Redis, and its process."""
    redis = pytest.importorskip("redis")
    server, port = program("redis-server"), port or free_port()
    with temporary_directory(None) as directory:
        command = [server, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(directory)]
        with running(command) as process, redis.Redis(port=port) as client:
            wait_for(client.ping, process)
            yield f"redis://127.0.0.1:{port}/0"


@contextlib.contextmanager
def mosquitto(directory, port=None, settings=""):
    """The port of a new MQTT broker that keeps its sessions in a directory."""
    server, port = program("mosquitto"), port or free_port()
    (directory / "mosquitto.conf").write_text(
        f"listener {port} 127.0.0.1\nallow_anonymous true\npersistence true\npersistence_location {directory}/\n"
        f"max_queued_messages 0\nuser root\n{settings}"
    )
    with running([server, "-c", str(directory / "mosquitto.conf")], cwd=directory) as process:

        def answers():
            socket.create_connection(("127.0.0.1", port)).close()
            return True

        wait_for(answers, process)
        yield port


@contextlib.contextmanager
def rabbitmq():
    """The AMQP port of a new RabbitMQ; data, name and ports are its own."""
    pika = pytest.importorskip("pika")
    program("rabbitmq-server")
    server = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")  # the one on the path insists on the user of the package
    server = str(server) if server.exists() else program("rabbitmq-server")
    with temporary_directory(None) as directory:
        port, distribution = free_port(), free_port()
        (directory / "rabbitmq.conf").write_text("loopback_users = none\n")
        (directory / "plugins").write_text("[].")
        environment = {
            **os.environ,
            "HOME": str(directory),
            "RABBITMQ_NODENAME": f"penstock-{port}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(port),
            "RABBITMQ_DIST_PORT": str(distribution),
            "RABBITMQ_MNESIA_BASE": str(directory / "data"),
            "RABBITMQ_LOG_BASE": str(directory / "log"),
            "RABBITMQ_LOGS": "-",
            "RABBITMQ_PID_FILE": str(directory / "pid"),
            "RABBITMQ_CONFIG_FILE": str(directory / "rabbitmq.conf"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(directory / "plugins"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "+S 1:1 +sbwt none",
        }
        try:
            output = directory / "output"
            with running([server], output, env=environment, cwd=directory, start_new_session=True) as process:

                def answers():
                    pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", port)).close()
                    return True

                try:
                    wait_for(answers, process, 120, output)
                    yield port
                finally:
                    with contextlib.suppress(Exception):
                        os.killpg(process.pid, 15)
        finally:  # Erlang's registry of nodes; it refuses while another process needs it
            subprocess.run(["epmd", "-kill"], capture_output=True, check=False)


@contextlib.contextmanager
def nats_server(directory, port=None):
    """The port of a new NATS that keeps its streams in a directory."""
    server, port = program("nats-server"), port or free_port()
    command = [server, "-a", "127.0.0.1", "-p", str(port), "-js", "-sd", str(directory)]
    with running(command, cwd=directory) as process:

        def answers():
            socket.create_connection(("127.0.0.1", port)).close()
            return True

        wait_for(answers, process)
        yield port
