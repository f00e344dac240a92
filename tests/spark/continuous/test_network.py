"""Connections of the continuous mode: the greeting, TLS, ports. No Spark: threads of this process talk over TCP."""

import contextlib
import datetime as dt
import pickle
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from penstock.common.errors import InvalidProgramError, JobExecutionError
from penstock.spark.continuous.messages import Closed, Data, Done, Stop
from penstock.spark.continuous.sockets import (
    Listener,
    NetworkSettings,
    SocketDriverLinks,
    SocketTaskLinks,
    TaskLostError,
    connect,
    connect_tasks,
)
from penstock.spark.continuous.tls import TlsFiles, tls_files

HOST = "127.0.0.1"
SECRET = b"s" * 32
LARGE = 3_000_000


def certificate(directory, name, password=None):
    """PEM files with a certificate that is its own authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    public, private = directory / f"{name}.crt", directory / f"{name}.key"
    public.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    hidden = serialization.BestAvailableEncryption(password.encode()) if password else serialization.NoEncryption()
    private.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, hidden))
    return TlsFiles(str(public), str(private), str(public), password)


@pytest.fixture(params=["plain", "tls"])
def network(request, tmp_path):
    return NetworkSettings(SECRET, None, certificate(tmp_path, "cluster", "word") if request.param == "tls" else None)


def accept(listener):
    """In another thread, as the other side waits for an answer."""
    result = []
    thread = threading.Thread(target=lambda: result.append(listener.accept(20)))
    thread.start()

    def wait():
        thread.join(30)
        return result[0]

    return wait


def never():
    raise AssertionError("the task gave up")


@pytest.fixture
def pair(network):
    """The driver's links to one task, and the links of that task."""
    listener = Listener(HOST, network)
    accepted = accept(listener)
    task = SocketTaskLinks(connect(listener.address, network, 0, 1), {}, never)
    driver = SocketDriverLinks({0: accepted().connection})
    listener.close()
    yield driver, task
    task.close()
    driver.close()


def next_of(driver):
    message = None
    while message is None:
        message = driver.receive(1)
    return message


def test_messages_of_any_size_arrive_whole_and_in_order(pair):
    driver, task = pair
    sizes = [0, 1, 100, LARGE, 3]
    sender = threading.Thread(target=lambda: [task.tell_driver(Done(0, n, [bytes(n)])) for n in sizes])
    sender.start()
    assert [len(next_of(driver).reports[0]) for _ in sizes] == sizes
    sender.join()


def test_a_task_sends_and_receives_at_the_same_time(pair):
    driver, task = pair
    with ThreadPoolExecutor(2) as threads:
        sending = threads.submit(lambda: [task.tell_driver(Done(0, n, [bytes(10_000)])) for n in range(200)])
        receiving = threads.submit(lambda: [task.receive().step for _ in range(200)])
        for n in range(200):
            driver.send(0, Data(n, 1, [bytes(10_000)]))
            assert next_of(driver).step == n
        assert receiving.result(60) == list(range(200))
        sending.result(60)


def test_the_driver_notices_a_task_that_ends_without_a_message(pair):
    driver, task = pair
    task.close()
    with pytest.raises(TaskLostError, match="task 0"):
        next_of(driver)


def test_a_task_that_has_closed_may_go(pair):
    driver, task = pair
    task.tell_driver(Closed(0))
    task.close()
    assert next_of(driver) == Closed(0)
    assert driver.receive(0.01) is None


def test_a_task_stops_when_the_driver_is_gone(pair):
    driver, task = pair
    driver.close()
    assert task.receive() == Stop()


def test_all_tasks_connect_to_each_other(network):
    count = 5
    listeners = [Listener(HOST, network) for _ in range(count)]
    addresses = [listener.address for listener in listeners]
    with ThreadPoolExecutor(count) as threads:
        futures = [
            threads.submit(connect_tasks, listeners[index], network, index, 7, addresses) for index in range(count)
        ]
        ends = [future.result(60) for future in futures]
    links = []
    for outgoing, incoming in ends:
        link = SocketTaskLinks(_Idle(), outgoing, lambda: None)
        for connection in incoming:
            link.add_incoming(connection)
        links.append(link)
    for index, link in enumerate(links):
        for other in range(count):
            if other != index:
                link.send(other, Data(index, 1, []))
    for index, link in enumerate(links):
        assert sorted(link.receive().step for _ in range(count - 1)) == [n for n in range(count) if n != index]
    for each in (*links, *listeners):
        each.close()


class _Idle:
    """A driver that says nothing until it is closed."""

    def __init__(self):
        self._closed = threading.Event()

    def receive(self):
        self._closed.wait()

    def close(self):
        self._closed.set()


def test_a_wrong_secret_is_rejected_by_both_sides(network):
    listener = Listener(HOST, network)
    accepted = accept(listener)
    wrong = NetworkSettings(b"x" * 32, None, network.tls)
    with pytest.raises(ConnectionError):
        connect(listener.address, wrong, 0, 1)
    assert accepted() is None
    listener.close()


def test_the_secret_never_travels():
    server = socket.create_server((HOST, 0))
    heard = bytearray()

    def listen():
        connection, _ = server.accept()
        connection.sendall(bytes(32))
        heard.extend(connection.recv(4096))
        connection.close()

    thread = threading.Thread(target=listen)
    thread.start()
    with pytest.raises(ConnectionError):
        connect(f"tcp:{HOST}:{server.getsockname()[1]}", NetworkSettings(SECRET), 0, 1)
    thread.join()
    server.close()
    assert heard
    assert SECRET not in heard


def test_records_are_not_readable_on_an_encrypted_connection(tmp_path):
    network = NetworkSettings(SECRET, None, certificate(tmp_path, "cluster"))
    seen = sent_for_one_record(network)
    assert b"a well-known record" in pickle.dumps(Data(1, 1, [b"a well-known record"]))
    assert b"a well-known record" not in seen
    assert len(seen) > 1000


def sent_for_one_record(network):
    """What goes over the wire from a client that sends one record to a listener."""
    listener = Listener(HOST, network)
    accepted = accept(listener)
    relay = socket.create_server((HOST, 0))
    seen = bytearray()

    def forward():
        client, _ = relay.accept()
        server = socket.create_connection((HOST, int(listener.address.rpartition(":")[2])))

        def copy(source, target, keep):
            with contextlib.suppress(OSError):  # either side may close first
                while piece := source.recv(65536):
                    if keep:
                        seen.extend(piece)
                    target.sendall(piece)
                target.shutdown(socket.SHUT_WR)

        back = threading.Thread(target=copy, args=(server, client, False))
        back.start()
        copy(client, server, keep=True)
        back.join()
        client.close()
        server.close()

    thread = threading.Thread(target=forward, daemon=True)
    thread.start()
    connection = connect(f"tcp:{HOST}:{relay.getsockname()[1]}", network, 0, 1)
    connection.send_message(pickle.dumps(Data(1, 1, [b"a well-known record"])))
    driver = SocketDriverLinks({0: accepted().connection})
    assert next_of(driver).frames == [b"a well-known record"]
    connection.close()
    driver.close()
    thread.join(30)
    listener.close()
    relay.close()
    return bytes(seen)


def test_a_certificate_of_another_authority_is_rejected(tmp_path):
    ours, other = certificate(tmp_path, "ours"), certificate(tmp_path, "other")
    listener = Listener(HOST, NetworkSettings(SECRET, None, ours))
    accepted = accept(listener)
    with pytest.raises(JobExecutionError, match=r"cannot agree on TLS.*other\.crt"):
        connect(listener.address, NetworkSettings(SECRET, None, other), 0, 1)
    assert accepted() is None
    listener.close()


def test_a_client_without_a_certificate_is_rejected(tmp_path):
    listener = Listener(HOST, NetworkSettings(SECRET, None, certificate(tmp_path, "ours")))
    accepted = accept(listener)
    with pytest.raises((ConnectionError, TimeoutError)):
        connect(listener.address, NetworkSettings(SECRET), 0, 1)
    assert accepted() is None
    listener.close()


def test_files_that_a_machine_lacks_are_named(tmp_path):
    files = TlsFiles(str(tmp_path / "none.crt"), str(tmp_path / "none.key"), str(tmp_path / "none.crt"))
    with pytest.raises(JobExecutionError, match=r"none\.crt.*Every machine"):
        files.context(server=True)


SPARK = {"spark.ssl.rpc.enabled": "true", "spark.ssl.rpc.certChain": "s.crt", "spark.ssl.rpc.privateKey": "s.key"}
OWN = {"security.ssl.internal.enabled": "true", "security.ssl.internal.cert": "o.crt", "security.ssl.internal.key": "o"}


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, None),
        (SPARK, TlsFiles("s.crt", "s.key", "s.crt")),
        (OWN, TlsFiles("o.crt", "o", "o.crt")),
        (SPARK | OWN | {"security.ssl.internal.ca": "ca.crt"}, TlsFiles("o.crt", "o", "ca.crt")),
        (SPARK | {"spark.ssl.rpc.privateKeyPassword": "word"}, TlsFiles("s.crt", "s.key", "s.crt", "word")),
        (
            OWN | {"security.ssl.internal.enabled": "false", "spark.network.crypto.enabled": "true"},
            TlsFiles("o.crt", "o", "o.crt"),
        ),
    ],
)
def test_certificates_come_from_the_settings_of_spark_or_of_penstock(settings, expected):
    assert tls_files(settings) == expected


@pytest.mark.parametrize(
    "name", ["spark.network.crypto.enabled", "spark.ssl.rpc.enabled", "spark.authenticate.enableSaslEncryption"]
)
def test_a_job_is_rejected_where_spark_encrypts_and_there_are_no_pem_files(name):
    with pytest.raises(InvalidProgramError, match=rf"{name}.*security.ssl.internal.cert.*micro-batch"):
        tls_files({name: "true"})


def test_a_key_store_of_java_gets_advice():
    with pytest.raises(InvalidProgramError, match="openssl pkcs12"):
        tls_files({"spark.ssl.rpc.enabled": "true", "spark.ssl.keyStore": "store.p12"})


def test_ports_stay_in_their_range_and_an_exhausted_range_is_named():
    with socket.create_server((HOST, 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(JobExecutionError, match=rf"{port} and {port} is free.*penstock.continuous.ports"):
            Listener(HOST, NetworkSettings(SECRET, (port, port)))
    listener = Listener(HOST, NetworkSettings(SECRET, (20_000, 60_000)))
    assert 20_000 <= int(listener.address.rpartition(":")[2]) <= 60_000
    listener.close()
