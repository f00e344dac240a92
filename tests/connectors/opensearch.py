"""A real OpenSearch for tests: one node, out of the jars that Maven fetches."""

import contextlib
import http.client
import json
from pathlib import Path

import pyspark
import pytest
from tests.connectors.servers import free_port, running, temporary_directory, wait_for

from penstock.spark.java import find_java
from penstock.testing.maven import maven_jars
from penstock.testing.server import ServerUnavailableError

VERSION = "2.19.1"
ARTIFACTS = [
    ("org.opensearch", "opensearch", VERSION),
    ("org.opensearch.plugin", "transport-netty4-client", VERSION),
]


class SearchServer:
    """Asks the node over HTTP."""

    def __init__(self, port):
        self.url = f"http://127.0.0.1:{port}"
        self._port = port

    def ask(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        try:
            data = None if body is None else json.dumps(body).encode()
            connection.request(method, path, data, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read() or b"{}")
        finally:
            connection.close()

    def documents(self, index):
        """All documents of an index, by id."""
        self.ask("POST", f"/{index}/_refresh")
        _, found = self.ask("GET", f"/{index}/_search?size=10000")
        return {hit["_id"]: hit["_source"] for hit in found["hits"]["hits"]}

    def version(self, index, document):
        """How often a document was written."""
        return self.ask("GET", f"/{index}/_doc/{document}")[1]["_version"]


@contextlib.contextmanager
def opensearch():
    java = find_java()
    if java is None:
        pytest.skip("OpenSearch needs Java")
    try:
        jars = maven_jars("opensearch", VERSION, ARTIFACTS)
    except ServerUnavailableError as error:
        pytest.skip(str(error))
    # Spark brings Janino, which compiles the launcher on a runtime without a compiler, and a logger.
    spark = Path(pyspark.__file__).parent / "jars"
    borrowed = [next(spark.glob(f"{name}-[0-9]*.jar")) for name in ("log4j-api", "log4j-core")]
    compiler = [next(spark.glob(f"{name}-[0-9]*.jar")) for name in ("janino", "commons-compiler")]
    with temporary_directory(None) as directory:
        (directory / "config").mkdir()
        port, output = free_port(), directory / "output"
        settings = {
            "path.home": directory,
            "cluster.name": f"penstock-{port}",
            "node.name": "one",
            "network.host": "127.0.0.1",
            "http.port": port,
            "transport.port": free_port(),
            "discovery.type": "single-node",
            "http.type": "netty4",
            "transport.type": "netty4",
            "cluster.routing.allocation.disk.threshold_enabled": "false",
        }
        command = [
            str(java / "bin" / "java"),
            "-Xmx256m",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            "-cp",
            ":".join([*map(str, borrowed), f"{jars}/*", *map(str, compiler)]),
            "org.codehaus.janino.SimpleCompiler",
            str(Path(__file__).with_name("SearchNode.java")),
            "SearchNode",
            *[f"{name}={value}" for name, value in settings.items()],
        ]
        with running(command, output, cwd=directory) as process:
            server = SearchServer(port)
            wait_for(lambda: server.ask("GET", "/_cluster/health")[1]["status"] == "green", process, 120, output)
            yield server
