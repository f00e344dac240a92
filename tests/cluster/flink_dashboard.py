"""Flink's own dashboard, from the jar that Maven has, as a proxy in front of a service."""

import http.client
import mimetypes
import threading
import urllib.parse
import zipfile
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from penstock.testing.maven import maven_jars
from penstock.testing.server import ServerUnavailableError

ARTIFACT = ("org.apache.flink", "flink-runtime-web", "2.3.0")
NOT_PASSED = {"host", "connection", "accept-encoding", "transfer-encoding", "content-length"}


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        """A browser that has left a page does not wait for its answers."""


class FlinkDashboard:
    """Serves the files of the jar, and asks the service for everything else. `failures` are its answers from 400 up."""

    def __init__(self, service, files):
        self.failures = []
        self.paths = set()
        upstream = urllib.parse.urlsplit(service).netloc
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self):
                path = self.path.partition("?")[0]
                name = "web" + ("/index.html" if path == "/" else path)
                if name in files:
                    kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
                    self.reply(200, {"Content-Type": kind}, files[name])
                    return
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                passed = {key: value for key, value in self.headers.items() if key.lower() not in NOT_PASSED}
                connection = http.client.HTTPConnection(upstream, timeout=60)
                try:
                    connection.request(self.command, self.path, body or None, passed)
                    answer = connection.getresponse()
                    content = answer.read()
                finally:
                    connection.close()
                outer.paths.add(path)
                if answer.status >= 400:
                    outer.failures.append(f"{self.command} {self.path}: {answer.status} {content[:300]!r}")
                kept = {k: v for k, v in answer.getheaders() if k.lower() not in NOT_PASSED | {"date"}}
                self.reply(answer.status, kept, content)

            def reply(self, status, headers, content):
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = answer  # noqa: N815

            def log_message(self, *arguments):
                """Quiet."""

        self._server = _Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def flink_dashboard(service):
    try:
        jar = next(maven_jars(ARTIFACT[1], ARTIFACT[2], [ARTIFACT], transitive=False).glob("*.jar"))
    except ServerUnavailableError as error:
        pytest.skip(str(error))
    with zipfile.ZipFile(jar) as archive:
        files = {name: archive.read(name) for name in archive.namelist() if name.startswith("web/")}
    dashboard = FlinkDashboard(service, files)
    try:
        yield dashboard
    finally:
        dashboard.close()
