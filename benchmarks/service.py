"""How fast the service answers: 20 jobs in 20 drivers, while 10 browsers poll, and while the drivers start.

python benchmarks/service.py [--jobs 20] [--browsers 10] [--seconds 20]

The drivers are processes with a job of the mini cluster each, whose function sleeps nearly all the time, so that the
service is measured and not the jobs. A browser asks for a job every 300 ms, ten times as often as the dashboard does.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

POLL_SECONDS = 0.3
START_SECONDS = 300.0


def drive(job_number: int) -> None:
    """A driver: one slow job without an end, until standard input closes."""
    from penstock.cli.command_line import RunCommand
    from penstock.cli.job_records import JobRecords
    from penstock.cli.job_server import JobServer
    from penstock.datastream import StreamExecutionEnvironment
    from penstock.testing import MiniCluster

    def slowly(number: int) -> tuple[int, int]:
        time.sleep(0.5)
        return number % 7, 1

    env = StreamExecutionEnvironment(executor=MiniCluster(max_records=4)).set_parallelism(2)
    numbers = env.from_sequence(1, 2**40).map(slowly)
    numbers.key_by(lambda pair: pair[0]).sum(1).name("count").filter(lambda pair: False).print()
    server = JobServer(RunCommand("job.py", [], [], "/"), JobRecords())
    name = f"job {job_number}"
    server.submitting(name)
    client = env.execute_async(name)
    server.follow(client)
    sys.stdin.read()
    os._exit(0)


def serve() -> None:
    """The service, until standard input closes."""
    from penstock.cli.job_records import JobRecords
    from penstock.cluster.gateway import create_gateway
    from penstock.cluster.rest_server import RestServer

    server = RestServer.on_port(create_gateway(JobRecords()), "127.0.0.1", "0")
    print(server.address, flush=True)
    sys.stdin.read()
    os._exit(0)


def timed(url: str) -> float:
    """Milliseconds of one request."""
    began = time.perf_counter()
    with urllib.request.urlopen(url, timeout=60) as answer:
        answer.read()
    return (time.perf_counter() - began) * 1000


def described(times: list[float]) -> str:
    """The percentiles people ask for."""
    cuts = statistics.quantiles(times, n=100, method="inclusive")
    return f"n={len(times)} p50={cuts[49]:.1f} ms p95={cuts[94]:.1f} ms p99={cuts[98]:.1f} ms max={max(times):.1f} ms"


def poll(url: str, ends: float, times: list[float]) -> None:
    """One browser."""
    while time.perf_counter() < ends:
        began = time.perf_counter()
        times.append(timed(url))
        time.sleep(max(0.0, POLL_SECONDS - (time.perf_counter() - began)))


def overview_while_starting(url: str, jobs: int) -> list[float]:
    """Ask for the overview until all jobs are there."""
    import json

    times: list[float] = []
    ends = time.monotonic() + START_SECONDS
    while time.monotonic() < ends:
        times.append(timed(f"{url}/overview"))
        with urllib.request.urlopen(f"{url}/overview", timeout=60) as answer:
            if json.load(answer)["jobs-running"] == jobs:
                return times
        time.sleep(0.1)
    raise SystemExit("the jobs did not start in time")


def measure(jobs: int, browsers: int, seconds: float) -> None:
    """Start everything, ask, print, and end everything."""
    import json

    with tempfile.TemporaryDirectory() as directory:
        environment = {**os.environ, "PENSTOCK_JOBS": str(Path(directory) / "jobs")}

        def start(*arguments: str) -> subprocess.Popen[str]:
            command = [sys.executable, __file__, *arguments]
            pipe = subprocess.PIPE
            return subprocess.Popen(command, stdin=pipe, stdout=pipe, env=environment, text=True)

        service = start("--serve")
        assert service.stdout is not None
        url = service.stdout.readline().strip()
        processes = [service]
        try:
            timed(f"{url}/overview")
            processes += [start("--drive", str(number)) for number in range(jobs)]
            print("GET /overview while they start:", described(overview_while_starting(url, jobs)), flush=True)
            with urllib.request.urlopen(f"{url}/jobs", timeout=60) as answer:
                ids = [job["id"] for job in json.load(answer)["jobs"]]
            times: list[float] = []
            ends = time.perf_counter() + seconds
            pollers = [
                threading.Thread(target=poll, args=(f"{url}/jobs/{ids[number % len(ids)]}", ends, times))
                for number in range(browsers)
            ]
            for poller in pollers:
                poller.start()
            for poller in pollers:
                poller.join()
            print(f"GET /jobs/:id by {browsers} browsers:", described(times))
        finally:
            for process in processes:
                process.kill()
                process.wait()


def main() -> None:
    """Measure, or be one of the processes."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--jobs", type=int, default=20)
    parser.add_argument("--browsers", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--drive", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.drive is not None:
        drive(options.drive)
    elif options.serve:
        serve()
    else:
        print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
        measure(options.jobs, options.browsers, options.seconds)


if __name__ == "__main__":
    main()
