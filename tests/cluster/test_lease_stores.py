"""Places of the leader's lease: each must let one of several services win, and keep what it says."""

import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from processes import wait_until

from penstock.cluster.lease_stores import (
    KubernetesApi,
    KubernetesLeases,
    ZooKeeperLeases,
    lease_store,
    shared_directory,
)
from penstock.common.errors import CheckpointError, CheckpointInUseError, FencedError, InvalidProgramError
from penstock.runtime.lease.files import LocalLeaseFiles
from penstock.runtime.lease.lease import Lease
from penstock.runtime.lease.owner import Owner
from penstock.spark.java import find_java
from penstock.testing.maven import maven_jars
from penstock.testing.server import ServerUnavailableError, TemporaryServer, end, free_ports

ZOOKEEPER_VERSION = "3.9.4"


class ApiServer(ThreadingHTTPServer):
    """As much of Kubernetes as leases need: one namespace, conditional creation, merge patches, labels, a token."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.leases = {}
        self.lock = threading.Lock()


class _Handler(BaseHTTPRequestHandler):
    def log_message(self, *arguments):
        pass

    def _answer(self, status, body):
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _serve(self):
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        base, leases = "/apis/coordination.k8s.io/v1/namespaces/streams/leases", self.server.leases
        url = urlsplit(self.path)
        name = url.path.removeprefix(base).strip("/")
        with self.server.lock:
            if self.headers["Authorization"] != "Bearer secret" or not url.path.startswith(base):
                self._answer(403, {"message": "forbidden"})
            elif self.command == "GET" and not name:
                key, _, value = parse_qs(url.query)["labelSelector"][0].partition("=")
                found = [lease for lease in leases.values() if lease["metadata"]["labels"].get(key) == value]
                self._answer(200, {"items": found})
            elif self.command == "POST":
                name = body["metadata"]["name"]
                status = 409 if name in leases else 201
                self._answer(status, leases.setdefault(name, body))
            elif name not in leases:
                self._answer(404, {"message": "not found"})
            elif self.command == "PATCH":
                assert self.headers["Content-Type"] == "application/merge-patch+json"
                leases[name]["metadata"]["annotations"].update(body["metadata"]["annotations"])
                self._answer(200, leases[name])
            elif self.command == "DELETE":
                self._answer(200, leases.pop(name))
            else:
                self._answer(200, leases[name])

    do_GET = do_POST = do_PATCH = do_DELETE = _serve  # noqa: N815


class ZooKeeperServer(TemporaryServer):
    """One real ZooKeeper."""

    def __init__(self):
        java = find_java()
        if java is None:
            raise ServerUnavailableError("ZooKeeper needs Java")
        self._java = str(java / "bin" / "java")
        artifacts = [
            ("org.apache.zookeeper", "zookeeper", ZOOKEEPER_VERSION),
            ("io.dropwizard.metrics", "metrics-core", "4.2.33"),
            ("org.xerial.snappy", "snappy-java", "1.1.10.8"),
        ]
        self._jars = maven_jars("zookeeper", ZOOKEEPER_VERSION, artifacts)
        self.port = 0
        self._process = None

    def _start(self):
        (self.port,) = free_ports(1)
        settings = {"clientPort": self.port, "clientPortAddress": "127.0.0.1", "admin.enableServer": "false"}
        settings |= {"dataDir": self.directory / "data", "tickTime": 2000}
        file = self.directory / "zoo.cfg"
        file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        options = ["-Xmx128m", "-XX:TieredStopAtLevel=1", "-cp", f"{self._jars}/*"]
        main = "org.apache.zookeeper.server.ZooKeeperServerMain"
        self._process = self._launch("zookeeper", [self._java, *options, main, str(file)])
        wait_until(self._accepts, 90, "the start of ZooKeeper")

    def _accepts(self):
        assert self._process.poll() is None, (self.directory / "zookeeper.log").read_text()[-2000:]
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
        except OSError:
            return False
        return True

    def _stop(self):
        end(self._process)


@pytest.fixture
def api():
    server = ApiServer()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def kubernetes(api, tmp_path):
    token = tmp_path / "token"
    token.write_text("secret\n")
    return lambda: KubernetesLeases(KubernetesApi("127.0.0.1", api.server_port, "streams", token), "/Default")


@pytest.fixture
def filesystem(tmp_path):
    return lambda: LocalLeaseFiles("here", tmp_path / "leader")


@pytest.fixture(scope="module")
def zookeeper_server():
    try:
        server = ZooKeeperServer()
    except ServerUnavailableError as error:
        pytest.skip(str(error))
    with server:
        yield server


@pytest.fixture
def zookeeper(zookeeper_server):
    stores = []

    def new():
        stores.append(ZooKeeperLeases(f"127.0.0.1:{zookeeper_server.port}", f"/penstock/{id(stores)}/leader"))
        return stores[-1]

    yield new
    for store in stores:
        store.close()


@pytest.fixture(params=["filesystem", "kubernetes", pytest.param("zookeeper", marks=pytest.mark.server)])
def new_store(request):
    return request.getfixturevalue(request.param)


def service(name, **changes):
    return Owner.of_this_process(f"service-{name}", name, 0.0)


def test_o133_of_several_services_one_creates_an_epoch(new_store):
    stores = [new_store() for _ in range(3)]
    assert [store.create("epoch-000001", b"mine") for store in stores] == [True, False, False]
    assert stores[2].read("epoch-000001") == b"mine"


def test_o133_contents_are_replaced_and_removed(new_store):
    store = new_store()
    store.create("epoch-000001", b"owner")
    store.write("heartbeat-000001", b"first")
    store.write("heartbeat-000001", b"second")
    assert new_store().read("heartbeat-000001") == b"second"
    assert sorted(store.names()) == ["epoch-000001", "heartbeat-000001"]
    store.remove("heartbeat-000001")
    store.remove("heartbeat-000001")
    assert store.read("heartbeat-000001") is None
    assert not store.exists("heartbeat-000001")
    assert store.exists("epoch-000001")


def test_o133_a_lease_is_kept_taken_over_and_given_back(new_store):
    first = Lease.acquire(new_store(), service("first"), timeout=60)
    with pytest.raises(CheckpointInUseError):
        Lease.acquire(new_store(), service("second"), timeout=60)
    second = Lease.acquire(new_store(), service("second"), timeout=60, take_over=True)
    assert (first.epoch, second.epoch) == (1, 2)
    with pytest.raises(FencedError):
        first.renew()
    second.release()
    third = Lease.acquire(new_store(), service("third"), timeout=60)
    assert third.epoch == 3
    third.release()
    first.release()


def test_o133_an_api_server_that_refuses_is_an_error_that_says_so(api):
    store = KubernetesLeases(KubernetesApi("127.0.0.1", api.server_port, "streams"), "default")
    with pytest.raises(CheckpointError, match=r"namespace streams, cluster default: the API server answers 403"):
        store.names()


def test_o131_the_settings_name_directory_and_cluster():
    settings = {"high-availability.type": "filesystem", "high-availability.storageDir": "file:///shared"}
    assert shared_directory(settings) == Path("/shared/default")
    assert shared_directory({**settings, "high-availability.cluster-id": "/blue"}) == Path("/shared/blue")
    assert shared_directory({}) is None
    with pytest.raises(InvalidProgramError, match=r"needs high-availability\.storageDir"):
        shared_directory({"high-availability.type": "zookeeper"})
    with pytest.raises(InvalidProgramError, match="must be one of none, filesystem, kubernetes, zookeeper"):
        shared_directory({"high-availability.type": "etcd"})


def test_o133_leases_of_kubernetes_need_a_pod_and_of_zookeeper_a_quorum(tmp_path, monkeypatch):
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(InvalidProgramError, match="in a pod"):
        lease_store({"high-availability.type": "kubernetes"}, tmp_path)
    with pytest.raises(InvalidProgramError, match=r"needs high-availability\.zookeeper\.quorum"):
        lease_store({"high-availability.type": "zookeeper"}, tmp_path)
