"""``penstock cluster start|stop|status``: the service of this machine."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from functools import partial
from pathlib import Path
from typing import Any

from penstock.cli.https import client_context
from penstock.cli.job_records import JobRecord, JobRecords
from penstock.common.configuration_file import settings_of_environment
from penstock.common.errors import InvalidProgramError, JobExecutionError

__all__ = ["start", "status", "stop"]

_HOST, _PORTS = "127.0.0.1", "8081-8090"
_START_SECONDS = 30.0
_STOP_SECONDS = 30.0
_LOOK_SECONDS = 0.05


def start(options: argparse.Namespace) -> int:
    """Start the service in the background, or in this process with ``--foreground``."""
    service = _service_module()
    directory: Path = options.dir or service.default_directory()
    settings = settings_of_environment() | dict(setting.split("=", 1) for setting in options.settings)
    # Flink's keys have the same meaning as the options, which win.
    options.host = options.host or settings.get("rest.bind-address", _HOST)
    options.port = options.port or settings.get("rest.bind-port") or settings.get("rest.port") or _PORTS
    if options.ha_dir is None:
        from penstock.cluster.lease_stores import shared_directory

        options.ha_dir = shared_directory(settings)
    if options.foreground:
        if options.ha_dir is not None:
            # Drivers inherit it, so that every service of the cluster knows how jobs have ended.
            os.environ["PENSTOCK_JOBS"] = str(options.ha_dir / "records")
        records = JobRecords()
        service.SessionService(
            directory,
            records,
            settings,
            options.master,
            shared=options.ha_dir,
            report_failure=partial(_record_failure, records),
        ).run(options.host, options.port)
        return 0
    running = service.running_service(directory)
    if running is not None:
        print(f"A service is running already: {running.url} (process {running.process}).")
        return 0
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    if options.workers is not None:
        _start_spark(options, directory)
    log = directory / "service.log"
    command = [sys.executable, "-m", "penstock.cli", "cluster", "start", "--foreground", "--dir", str(directory)]
    command += ["--host", options.host, "--port", options.port]
    command += [part for setting in options.settings for part in ("-D", setting)]
    command += ["--master", options.master] if options.master else []
    command += ["--ha-dir", str(options.ha_dir)] if options.ha_dir is not None else []
    with log.open("ab") as output:
        process = subprocess.Popen(  # noqa: S603 - this program again
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
    url = _wait_until_it_answers(service, directory, process, log)
    if options.host not in {"127.0.0.1", "localhost", "::1"} and "penstock.security.auth=token" not in options.settings:
        print(
            f"warning: {options.host} is reachable from other machines without a password: anyone "
            "there can see and stop jobs (penstock.security.auth=token)",
            file=sys.stderr,
        )
    print(f"The service is running: {url}\nLog: {log}")
    return 0


def _start_spark(options: argparse.Namespace, directory: Path) -> None:
    """Start a Spark on this machine that all jobs of the service share."""
    from penstock.cluster.standalone import start_spark

    if options.master:
        raise InvalidProgramError("--workers starts a Spark on this machine: remove --master")
    spark = start_spark(directory, options.workers)
    options.master = spark.master
    print(f"Spark is running: {spark.master} ({options.workers} workers), {spark.web}")


def _record_failure(records: JobRecords, job: Any, error: str) -> None:
    """Record that a job could not be recovered, so that it is shown as failed."""
    now = time.time()
    program = next((argument for argument in job.arguments if argument.endswith((".py", ".zip", ".whl"))), "")
    records.write(
        JobRecord(job.job_id, Path(program).name, "FAILED", program, 0, now, "", log=job.log, ended=now, error=error)
    )


def _wait_until_it_answers(service: Any, directory: Path, process: subprocess.Popen[bytes], log: Path) -> str:
    limit = time.monotonic() + _START_SECONDS
    while time.monotonic() < limit and process.poll() is None:
        running = service.running_service(directory)
        if running is not None and running.process == process.pid:
            process.returncode = 0  # leave it running
            url: str = running.url
            return url
        time.sleep(_LOOK_SECONDS)
    last = log.read_text(encoding="utf-8", errors="replace").splitlines()[-20:]
    raise JobExecutionError("\n".join([f"the service did not start; the end of {log}:", *last]))


def stop(options: argparse.Namespace) -> int:
    """End the service. With ``--keep-jobs``, its jobs continue; otherwise they are cancelled."""
    service = _service_module()
    directory: Path = options.dir or service.default_directory()
    running = service.running_service(directory)
    if running is None:
        print("No service is running.")
        _stop_spark(options, directory)
        return 1
    jobs = [job for job in _get(f"{running.url}/jobs/overview")["jobs"] if job["end-time"] < 0]
    if jobs and options.savepoint:
        from penstock.cli.remote import RestClient
        from penstock.cli.stop_all import stop_all

        stop_all(RestClient(running.url), jobs, options.savepoint, JobRecords())
    elif jobs and not options.keep_jobs:
        _ask(options, jobs)
        for job in jobs:
            try:
                _send("PATCH", f"{running.url}/jobs/{job['jid']}?mode=cancel")
            except urllib.error.HTTPError as error:  # it has ended meanwhile, or its driver does not respond
                print(f"Job {job['jid']} ({job['name']}) was not cancelled: {error}", file=sys.stderr)
            else:
                print(f"Cancelled job {job['jid']} ({job['name']}).")
    os.kill(running.process, signal.SIGTERM)
    limit = time.monotonic() + _STOP_SECONDS
    while service.running_service(directory) is not None:
        if time.monotonic() > limit:
            raise JobExecutionError(f"the service (process {running.process}) did not end in {_STOP_SECONDS:.0f} s")
        time.sleep(_LOOK_SECONDS)
    print("The service has ended.")
    _stop_spark(options, directory)
    return 0


def _stop_spark(options: argparse.Namespace, directory: Path) -> None:
    if not options.keep_jobs and (directory / "spark.json").exists():
        from penstock.cluster.standalone import stop_spark

        if stop_spark(directory):
            print("Its Spark has ended.")


def _ask(options: argparse.Namespace, jobs: list[Any]) -> None:
    if options.yes:
        return
    names = ", ".join(job["name"] for job in jobs)
    if not sys.stdin.isatty():
        raise InvalidProgramError(f"jobs are running ({names}): --keep-jobs leaves them, --yes cancels them")
    if input(f"Cancel the running jobs ({names})? [y/N] ").strip().lower() != "y":
        raise InvalidProgramError("the service was not stopped; --keep-jobs leaves the jobs running")


def status(options: argparse.Namespace) -> int:
    """Show where the service is, and the status of its jobs."""
    service = _service_module()
    running = service.running_service(options.dir or service.default_directory())
    if running is None:
        print("No service is running. (penstock cluster start)")
        return 1
    found = _get(f"{running.url}/overview")
    print(f"url       {running.url}\nprocess   {running.process}\nversion   {found['penstock-version']}")
    print(
        f"jobs      {found['jobs-running']} running, {found['jobs-finished']} finished, "
        f"{found['jobs-cancelled']} cancelled, {found['jobs-failed']} failed"
    )
    return 0


def _service_module() -> Any:
    try:
        from penstock.cluster import session_service
    except ImportError as error:
        raise InvalidProgramError(
            f"this command needs the extra 'service' ({error}): pip install 'penstock[service]'"
        ) from None
    return session_service


def _get(url: str) -> Any:
    return _send("GET", url)


def _send(method: str, url: str) -> Any:
    token = os.environ.get("PENSTOCK_TOKEN")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    request = urllib.request.Request(url, headers=headers, method=method)  # noqa: S310 - our own service
    context = client_context() if url.startswith("https:") else None
    with urllib.request.urlopen(request, timeout=10, context=context) as response:  # noqa: S310
        return json.loads(response.read())
