"""Metrics for other systems."""

import http.server
import json
import logging
import shutil
import socket
import subprocess
import threading
import time
import urllib.parse
import urllib.request

import pytest

from penstock.cluster.job_registry import JobRegistry
from penstock.cluster.reporters.reporting import Reporting
from penstock.cluster.reporters.samples import collect
from penstock.cluster.workers import Workers
from penstock.common.errors import InvalidProgramError
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.connectors import DiscardingSink
from penstock.datastream.functions import MapFunction
from penstock.testing import MiniCluster


class Counting(MapFunction):
    def open(self, runtime_context):
        group = runtime_context.get_metrics_group()
        self.seen = group.counter("seen")
        self.sizes = group.distribution("sizes")
        self.rate = group.meter("rate")

    def map(self, value):
        self.seen.inc()
        self.sizes.update(value)
        self.rate.mark_event()
        return value


@pytest.fixture
def samples():
    """Of a job without an end that has user metrics."""
    env = StreamExecutionEnvironment(executor=MiniCluster(max_records=10))
    env.set_parallelism(1)
    stream = env.from_sequence(1, 2**60).key_by(lambda n: n % 3).sum().name("total")
    stream.map(Counting()).name("my map").sink_to(DiscardingSink())
    client = env.execute_async("my <job>")
    registry, workers = JobRegistry(), Workers.local(2, started=0)
    job = registry.add(client)
    while job.progress.checkpoint_id < 3:
        time.sleep(0.02)
    yield lambda: list(collect(registry.all(), workers))
    client.cancel().result()


def reporting(samples, kind, **options):
    settings = {f"metrics.reporter.test.{key.replace('__', '.')}": str(value) for key, value in options.items()}
    settings |= {"metrics.reporters": "test", "metrics.reporter.test.factory.class": kind}
    return Reporting({"metrics.reporter.test.interval": "100 ms", **settings}, samples)


class Receiver(http.server.ThreadingHTTPServer):
    """Remembers what is sent to it."""

    def __init__(self):
        self.received = []
        received = self.received

        class Handler(http.server.BaseHTTPRequestHandler):
            def handle_any(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                received.append((self.command, self.path, body))
                self.send_response(200)
                self.end_headers()

            do_PUT = do_POST = do_DELETE = handle_any  # noqa: N815 - the names are the server's

            def log_message(self, *args):
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def first(self):
        for _ in range(100):
            if self.received:
                return self.received[0]
            time.sleep(0.05)
        raise AssertionError("nothing was sent")


@pytest.fixture
def receiver():
    server = Receiver()
    yield server
    server.shutdown()
    server.server_close()


def test_o110_user_metrics_are_at_the_scope_of_their_operator(samples):
    found = {sample.name: sample for sample in samples() if sample.scope == "taskmanager_job_task_operator"}
    assert found["seen"].value > 0
    assert found["seen"].variables["operator_name"] == "my map"
    assert {"sizes.count", "sizes.min", "sizes.max", "sizes.mean", "rate.rate", "rate.count"} <= found.keys()


def test_o111_every_task_has_flinks_metrics(samples):
    found = {sample.name for sample in samples() if sample.scope == "taskmanager_job_task"}
    assert {
        "numRecordsIn", "numRecordsOut", "numBytesIn", "numBytesOut", "numRecordsInPerSecond", "numBytesOutPerSecond",
        "currentInputWatermark", "busyTimeMsPerSecond", "idleTimeMsPerSecond", "backPressuredTimeMsPerSecond",
        "isBackPressured", "accumulateBusyTimeMs",
    } <= found  # fmt: skip


def test_o112_every_job_has_flinks_metrics(samples):
    found = {sample.name for sample in samples() if sample.scope == "jobmanager_job"}
    assert {"uptime", "numRestarts", "lastCheckpointDuration", "numberOfCompletedCheckpoints"} <= found


def test_o117_an_unknown_reporter_is_an_error_at_start():
    with pytest.raises(InvalidProgramError, match=r"there is no reporter 'org\.example\.Nonsense'"):
        reporting(list, "org.example.Nonsense")


def test_o117_a_reporter_that_cannot_send_complains_once_a_minute(samples, caplog):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        reporters = reporting(samples, "graphite", host="127.0.0.1", port=unused.getsockname()[1])
        time.sleep(0.6)
        reporters.close()
    assert len([record for record in caplog.records if "could not send" in record.message]) == 1


def test_o117_filters_choose_by_scope_and_name(samples, receiver):
    url = f"http://127.0.0.1:{receiver.server_port}"
    reporters = reporting(
        samples, "pushgateway", hostUrl=url, filter__includes="jobmanager.job:num*", filter__excludes="*:numRestarts"
    )
    body = receiver.first()[2].decode()
    reporters.close()
    assert "flink_jobmanager_job_numberOfCompletedCheckpoints" in body
    assert "numRestarts" not in body
    assert "taskmanager" not in body


def test_o119_push_gateway_gets_all_and_forgets_us_at_the_end(samples, receiver):
    url = f"http://127.0.0.1:{receiver.server_port}"
    kind = "org.apache.flink.metrics.prometheus.PrometheusPushGatewayReporterFactory"
    reporters = reporting(samples, kind, hostUrl=url, jobName="j", randomJobNameSuffix="false", groupingKey="a=b;c=d e")
    method, path, body = receiver.first()
    assert (method, path) == ("PUT", "/metrics/job/j/a/b/c/d%20e")
    assert b"flink_taskmanager_job_task_operator_seen{" in body
    reporters.close()
    assert receiver.received[-1][:2] == ("DELETE", path)


def test_o119_statsd_gets_gauges_in_small_datagrams(samples):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.settimeout(5)
        reporters = reporting(samples, "statsd", host="127.0.0.1", port=server.getsockname()[1])
        datagrams = [server.recv(65536).decode() for _ in range(5)]
        reporters.close()
    assert max(map(len, datagrams)) <= 1432
    lines = "\n".join(datagrams).split("\n")
    assert all(line.endswith("|g") for line in lines)
    position, negative = next((i, line) for i, line in enumerate(lines) if ":-" in line)
    assert lines[position - 1] == f"{negative.partition(':')[0]}:0|g"


def test_o119_graphite_gets_lines_with_names_values_and_times(samples):
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(5)
        reporters = reporting(samples, "graphite", host="127.0.0.1", port=server.getsockname()[1])
        connection, _ = server.accept()
        with connection, connection.makefile() as lines:
            found = [line.split(" ") for line in lines]
        reporters.close()
    assert all(len(line) == 3 for line in found)
    assert any(name.endswith("my__job_.my_map.0.seen") for name, _, _ in found)


def test_o119_the_log_gets_one_block(samples, caplog):
    with caplog.at_level(logging.INFO, "penstock.metrics"):
        reporters = reporting(samples, "log")
        time.sleep(0.5)
        reporters.close()
    assert "my_map.0.seen: " in caplog.text


def test_o119_opentelemetry_gets_gauges_with_attributes(samples, receiver):
    reporters = reporting(samples, "otel", exporter__endpoint=f"http://127.0.0.1:{receiver.server_port}")
    _, path, body = receiver.first()
    reporters.close()
    assert path == "/v1/metrics"
    metrics = json.loads(body)["resourceMetrics"][0]["scopeMetrics"][0]["metrics"]
    seen = next(metric for metric in metrics if metric["name"].endswith(".seen"))
    assert seen["gauge"]["dataPoints"][0]["asDouble"] > 0


@pytest.mark.skipif(shutil.which("prometheus") is None, reason="there is no Prometheus on this machine")
def test_o118_a_real_prometheus_scrapes_flinks_names(samples, tmp_path):
    reporters = reporting(samples, "org.apache.flink.metrics.prometheus.PrometheusReporterFactory", port="0")
    (server,) = reporters.servers
    config = {
        "global": {"scrape_interval": "200ms"},
        "scrape_configs": [{"job_name": "penstock", "static_configs": [{"targets": [server.address[7:]]}]}],
    }
    (tmp_path / "prometheus.yml").write_text(json.dumps(config))  # JSON is YAML
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    process = subprocess.Popen(
        [
            *("prometheus", f"--config.file={tmp_path / 'prometheus.yml'}", f"--storage.tsdb.path={tmp_path / 'data'}"),
            f"--web.listen-address={address}",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        (found,) = query(address, "flink_taskmanager_job_task_operator_seen")
    finally:
        process.kill()
        process.wait()
        reporters.close()
    assert float(found["value"][1]) > 0
    labels = found["metric"]
    assert (labels["job_name"], labels["operator_name"], labels["subtask_index"]) == ("my__job_", "my_map", "0")
    assert {"job_id", "task_id", "task_name", "operator_id", "tm_id", "host"} <= labels.keys()


def query(address, expression):
    url = f"http://{address}/api/v1/query?" + urllib.parse.urlencode({"query": expression})
    for _ in range(150):
        try:
            with urllib.request.urlopen(url, timeout=5) as response:
                found = json.loads(response.read())["data"]["result"]
        except OSError:
            found = []
        if found:
            return found
        time.sleep(0.2)
    raise AssertionError(f"Prometheus has no {expression}")
