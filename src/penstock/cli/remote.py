"""Commands with ``-m URL``: control the jobs of a service over its REST API. Uses only the standard library."""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
import zipfile
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from penstock.cli.https import client_context
from penstock.cli.programs import check_program
from penstock.common.errors import InvalidProgramError, JobExecutionError
from penstock.common.spark_execution_mode import EXECUTION_MODE
from penstock.runtime.lease.lease import TAKE_OVER_KEY

__all__ = ["RestClient", "cancel", "list_jobs", "packed", "rescale", "run", "savepoint", "status", "stop"]

_SECONDS = 120.0
_POLL_SECONDS = 0.2
_BEAT_SECONDS = 5.0
_STANDBY = 503
_BEAT_LASTS = 60.0
_TERMINAL = {"FINISHED", "CANCELED", "FAILED"}
Json = dict[str, Any]


class RestClient:
    """A service at ``host:port`` or at a URL. The token is in ``PENSTOCK_TOKEN``, so no process list shows it."""

    def __init__(self, address: str) -> None:
        url = address if "://" in address else f"http://{address}"
        if urllib.parse.urlsplit(url).scheme not in {"http", "https"}:
            raise InvalidProgramError(f"-m takes host:port or an http(s) URL, not '{address}'")
        self.url = url.rstrip("/")
        self._context = client_context() if self.url.startswith("https:") else None

    def send(self, method: str, path: str, body: Json | None = None) -> Any:
        """Send a request, and return the answer as JSON. Raise the service's error."""
        data = None if body is None else json.dumps(body).encode()
        return self._send(method, path, data, "application/json")

    def upload(self, file: Path) -> str:
        """Upload a program, and return its path in the service."""
        boundary = uuid.uuid4().hex
        head = (
            f'--{boundary}\r\nContent-Disposition: form-data; name="jarfile"; filename="{file.name}"\r\n'
            "Content-Type: application/octet-stream\r\n\r\n"
        )
        data = head.encode() + file.read_bytes() + f"\r\n--{boundary}--\r\n".encode()
        answer = self._send("POST", "/jars/upload", data, f"multipart/form-data; boundary={boundary}")
        return str(answer["filename"])

    def _send(self, method: str, path: str, data: bytes | None, content_type: str) -> Any:
        headers = {"Content-Type": content_type}
        token = os.environ.get("PENSTOCK_TOKEN")
        if token:
            headers["Authorization"] = f"Bearer {token}"
        request = urllib.request.Request(  # noqa: S310 - the scheme was checked
            f"{self.url}/v1{path}", data, headers, method=method
        )
        try:
            with urllib.request.urlopen(request, timeout=_SECONDS, context=self._context) as response:  # noqa: S310
                return json.loads(response.read())
        except urllib.error.HTTPError as error:
            leader = error.headers.get("Location", "").partition("/v1/")[0]
            if error.code == _STANDBY and leader and leader != self.url:
                self.url = leader
                return self._send(method, path, data, content_type)
            raise JobExecutionError(_first_error(error)) from None
        except OSError as error:
            raise JobExecutionError(f"the service at {self.url} does not answer: {error}") from None

    def find(self, job: str) -> Json:
        """Return the job whose id starts with this prefix."""
        jobs = self.send("GET", "/jobs/overview")["jobs"]
        found: list[Json] = [each for each in jobs if each["jid"].startswith(job.lower())]
        if len(found) != 1:
            what = "several jobs" if found else "no job"
            raise InvalidProgramError(f"the service at {self.url} has {what} with an id that begins with '{job}'")
        return found[0]

    def wait_for(self, path: str, trigger: str) -> Json:
        """Wait for an operation, and return its result."""
        while True:
            answer = self.send("GET", f"{path}/{trigger}")
            if answer["status"]["id"] == "COMPLETED":
                operation: Json = answer["operation"]
                if "failure-cause" in operation:
                    raise JobExecutionError(operation["failure-cause"]["stack-trace"])
                return operation
            time.sleep(_POLL_SECONDS)


def _first_error(error: urllib.error.HTTPError) -> str:
    try:
        return str(json.loads(error.read())["errors"][0])
    except (ValueError, KeyError, IndexError, TypeError):
        return f"the service answered {error.code} {error.reason}"


def list_jobs(options: argparse.Namespace) -> int:
    """Print a table of the service's jobs."""
    jobs = RestClient(options.jobmanager).send("GET", "/jobs/overview")["jobs"]
    shown = [job for job in jobs if options.all or job["state"] not in _TERMINAL]
    if not shown:
        print("No jobs are known." if options.all else "No jobs are running. (penstock list -a: also ended ones)")
    for job in shown:
        print(f"{job['jid']}  {job['state']:10}  {_moment(job['start-time'])}  {job['name']}")
    return 0


def status(options: argparse.Namespace) -> int:
    """Print the status of a job."""
    job = RestClient(options.jobmanager).find(options.job)
    print(f"job       {job['jid']}\nname      {job['name']}\nstatus    {job['state']}")
    print(f"started   {_moment(job['start-time'])}")
    if job["end-time"] >= 0:
        print(f"ended     {_moment(job['end-time'])}")
    return 0


def savepoint(options: argparse.Namespace) -> int:
    """Take a savepoint while the job continues, or delete one."""
    client = RestClient(options.jobmanager)
    if options.dispose:
        trigger = client.send("POST", "/savepoint-disposal", {"savepoint-path": options.dispose})["request-id"]
        client.wait_for("/savepoint-disposal", trigger)
        print(f"Savepoint {options.dispose} disposed.")
        return 0
    if options.job is None:
        raise InvalidProgramError("missing job id: use penstock savepoint JOB [DIRECTORY]; penstock list shows the ids")
    body = {"target-directory": options.directory} if options.directory else {}
    _with_savepoint(client, client.find(options.job)["jid"], "savepoints", body)
    return 0


def stop(options: argparse.Namespace) -> int:
    """Stop a job with a savepoint."""
    client = RestClient(options.jobmanager)
    body: Json = {"drain": options.drain}
    if options.savepoint_path:
        body["targetDirectory"] = options.savepoint_path
    _with_savepoint(client, client.find(options.job)["jid"], "stop", body)
    return 0


def _with_savepoint(client: RestClient, job: str, action: str, body: Json) -> None:
    body["triggerId"] = uuid.uuid4().hex  # if it is sent again after a timeout, it is the same operation
    trigger = client.send("POST", f"/jobs/{job}/{action}", body)["request-id"]
    location = client.wait_for(f"/jobs/{job}/savepoints", trigger)["location"]
    print(f"Savepoint completed.\nPath: {location}")


def cancel(options: argparse.Namespace) -> int:
    """End a job, optionally with a savepoint."""
    client = RestClient(options.jobmanager)
    job = client.find(options.job)["jid"]
    if options.with_savepoint is None:
        client.send("PATCH", f"/jobs/{job}?mode=cancel")
    else:
        body: Json = {"cancel-job": True}
        if options.with_savepoint:
            body["target-directory"] = options.with_savepoint
        _with_savepoint(client, job, "savepoints", body)
    print(f"Cancelled job {job}.")
    return 0


def rescale(options: argparse.Namespace) -> int:
    """Change the parallelism of a job."""
    client = RestClient(options.jobmanager)
    job = client.find(options.job)["jid"]
    path = f"/jobs/{job}/rescaling"
    client.wait_for(path, client.send("PATCH", f"{path}?parallelism={options.parallelism}")["request-id"])
    print(f"Job {job} runs with parallelism {options.parallelism}.")
    return 0


def run(options: argparse.Namespace) -> int:
    """Upload a program, start it, and, unless detached, wait for its end. Ctrl-C leaves the job running."""
    client = RestClient(options.jobmanager)
    check_program(options.program)
    settings = dict(setting.split("=", 1) for setting in options.settings)
    if options.master:
        settings["spark.master"] = options.master
    if options.mode:
        settings[EXECUTION_MODE] = options.mode
    if options.take_over:
        settings[TAKE_OVER_KEY] = "true"
    if options.py_files:
        uploaded = [client.upload(file) for file in packed(options.py_files.split(","))]
        settings["python.files"] = ",".join(uploaded)
    program = Path(client.upload(options.program)).name
    body: Json = {
        "programArgsList": options.arguments,
        "flinkConfiguration": settings,
        "allowNonRestoredState": options.allow_non_restored_state,
    }
    if options.entry:
        body["entryClass"] = options.entry
    if options.parallelism:
        body["parallelism"] = options.parallelism
    if options.from_savepoint:
        body["savepointPath"] = options.from_savepoint
    job = client.send("POST", f"/jars/{urllib.parse.quote(program)}/run", body)["jobid"]
    print(f"Job has been submitted with JobID {job}", flush=True)
    if options.detached:
        return 0
    try:
        beats = _Heartbeats(client, job, wanted=options.shutdown_on_attached_exit)
        while (state := client.send("GET", f"/jobs/{job}/status")["status"]) not in _TERMINAL:
            beats.send()
            time.sleep(_POLL_SECONDS)
    except KeyboardInterrupt:
        if options.shutdown_on_attached_exit:
            client.send("PATCH", f"/jobs/{job}?mode=cancel")
            print(f"\nCancelled job {job}.")
            return 1
        print(f"\nDetached: job {job} continues. (penstock cancel -m {options.jobmanager} {job})")
        return 0
    print(f"Job {job}: {state}")
    return 0 if state == "FINISHED" else 1


class _Heartbeats:
    """Tell the service that this command is alive. The service cancels the job when the heartbeats stop."""

    def __init__(self, client: RestClient, job: str, *, wanted: bool) -> None:
        self._client = client
        self._path = f"/jobs/{job}/clientHeartbeat"
        self._wanted = wanted
        self._next = 0.0

    def send(self) -> None:
        """Send a heartbeat if it is due."""
        if self._wanted and time.monotonic() >= self._next:
            self._client.send("PATCH", self._path, {"expiredTimestamp": int((time.time() + _BEAT_LASTS) * 1000)})
            self._next = time.monotonic() + _BEAT_SECONDS


def packed(files: Iterable[str]) -> Iterator[Path]:
    """Yield files to upload: modules and packages as a zip, since the service renames files."""
    with tempfile.TemporaryDirectory() as place:
        for number, name in enumerate(filter(None, (file.strip() for file in files))):
            path = Path(name)
            if path.suffix.lower() in {".zip", ".whl"}:
                yield path
                continue
            if not path.exists():
                raise InvalidProgramError(f"the file '{path}' does not exist (--py-files)")
            archive = Path(place) / f"files-{number}.zip"
            with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as content:
                members = [path] if path.is_file() else sorted(path.rglob("*.py"))
                for member in members:
                    content.write(member, member.relative_to(path.parent))
            yield archive


def _moment(milliseconds: int) -> str:
    return f"{datetime.fromtimestamp(milliseconds / 1000).astimezone():%Y-%m-%d %H:%M:%S}"
