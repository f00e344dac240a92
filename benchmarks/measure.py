"""Runs one measured process and reads its result."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.expected import expected_rate, remember_rate
from benchmarks.harness import kafka
from benchmarks.harness.cpu import machine_cpu_seconds, processes_of_session
from benchmarks.harness.options import Options
from benchmarks.harness.report import take_over
from benchmarks.jobs.catalogue import Job
from benchmarks.systems.catalogue import System
from benchmarks.systems.environment import CACHE, ROOT

LOGS = CACHE / "logs"


class MeasurementError(Exception):
    """A measured process gave no figure: what the table says about it, and what is known beyond that."""

    def __init__(self, verdict: str, details: str = "") -> None:
        super().__init__(f"{verdict}; {details}" if details else verdict)
        self.verdict = verdict


@dataclass(slots=True, frozen=True)
class Plan:
    """How every measurement of this session is taken."""

    records: int
    seconds: float
    parallelism: int
    limit: float
    warm_up_seconds: float
    latency_seconds: float
    rate: int | None  # records per second of latency jobs, instead of their own rate
    idle_cores: float
    patience: float

    def options(self, system: System, job: Job, mode: str) -> Options:
        """The options of one measured process."""
        return Options(
            package=system.package,
            job=job.letter,
            variant=system.variant,
            keys=job.keys,
            parallelism=self.parallelism,
            records=self.records,
            expected=expected_rate(system.name, job.letter),
            seconds=self.seconds * job.stretch,
            mode=mode,
            port=0,
            directory=".",
        )


def measure(system: System, job: Job, plan: Plan) -> dict[str, object]:
    """One repeat of one job on one system."""
    _wait_for_quiet(plan)
    if job.uses_kafka and job.measures_latency:
        return _measure_kafka_latency(system, job, plan)
    if job.measures_latency:
        return _measure_latency(system, job, plan)
    result = _drive(system, plan.options(system, job, "slope"), plan.limit)
    remember_rate(system.name, job.letter, float(str(result["records_per_second"])))
    return result


def loop_speed() -> float:
    """Million additions a second in a plain loop: what a core of this machine is worth just now."""
    start = time.perf_counter()
    total = 0
    for n in range(2_000_000):
        total += n
    return 2 / (time.perf_counter() - start)


def collect(system: System, job: Job, plan: Plan) -> dict[str, object]:
    """The fingerprint of a job's results, with one subtask so that they do not depend on interleaving."""
    options = replace(plan.options(system, job, "collect"), parallelism=1)
    return _drive(system, options, plan.limit)


def _start(system: System, options: Options) -> tuple[subprocess.Popen[bytes], Path]:
    """A measured process, in a session of its own, and its log."""
    LOGS.mkdir(parents=True, exist_ok=True)
    log = LOGS / f"{options.job}-{system.name}.log"
    with log.open("w") as stream:
        process = subprocess.Popen(
            system.command(options.job, options.arguments()),
            cwd=ROOT,
            env=system.process_environment(),
            stdout=stream,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    return process, log


def _drive(system: System, options: Options, limit: float) -> dict[str, object]:
    process, log = _start(system, options)
    try:
        process.wait(limit)
    except subprocess.TimeoutExpired:
        raise MeasurementError(f"no result within {limit:.0f} s", f"see {log}") from None
    finally:
        _end_session(process)
    output = log.read_text(errors="replace")
    try:
        return take_over(output)
    except LookupError:
        raise MeasurementError("failed", f"see {log}:\n{output[-1500:]}") from None


def _end_session(process: subprocess.Popen[bytes]) -> None:
    """End the driver and what it left behind: the processes of the session it was started in, nothing else."""
    for pid in processes_of_session(process.pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.wait()


def _measure_latency(system: System, job: Job, plan: Plan) -> dict[str, object]:
    with tempfile.TemporaryDirectory(prefix="bench-latency-") as scratch:
        directory = Path(scratch)
        port_file = directory / "port"
        seconds = plan.warm_up_seconds + plan.latency_seconds
        feeder = subprocess.Popen(
            [
                *(sys.executable, "-m", "benchmarks.harness.feed", "--port-file", str(port_file)),
                *("--rate", str(plan.rate or job.rate), "--seconds", str(seconds), "--keys", str(job.keys)),
            ],
            cwd=ROOT,
        )
        try:
            port = _await_port(port_file, feeder)
            options = replace(plan.options(system, job, "latency"), port=port, directory=scratch)
            busy, start = machine_cpu_seconds(), time.perf_counter()
            _drive(system, options, seconds + plan.limit)
            cores = (machine_cpu_seconds() - busy) / (time.perf_counter() - start)
        finally:
            feeder.kill()
            feeder.wait()
        return {**percentiles(directory, plan.warm_up_seconds), "machine_cores": cores}


def _measure_kafka_latency(system: System, job: Job, plan: Plan) -> dict[str, object]:
    """The job runs until it is ended; what is sent and what a reader of committed records sees is noted here."""
    topics = kafka.new_topics(plan.parallelism)
    load = kafka.KafkaLoad(os.environ[kafka.BOOTSTRAP], *topics, bounded=False)
    with tempfile.TemporaryDirectory(prefix="bench-latency-") as scratch:
        process, log = _start(system, replace(plan.options(system, job, "latency"), directory=",".join(topics)))
        busy, start = machine_cpu_seconds(), time.perf_counter()
        try:
            kafka.measure_latency(
                load,
                Path(scratch),
                rate=plan.rate or job.rate,
                seconds=plan.warm_up_seconds + plan.latency_seconds,
                keys=job.keys,
                partitions=plan.parallelism,
                is_running=lambda: process.poll() is None,
            )
            if process.poll() is not None:
                raise MeasurementError("failed", f"see {log}:\n{log.read_text(errors='replace')[-1500:]}")
        finally:
            cores = (machine_cpu_seconds() - busy) / (time.perf_counter() - start)
            _end_session(process)
        return {**percentiles(Path(scratch), plan.warm_up_seconds), "machine_cores": cores}


def percentiles(directory: Path, warm_up_seconds: float) -> dict[str, object]:
    """p50, p99 and the largest latency in milliseconds of all records sent after the warm-up."""
    samples = [
        tuple(map(int, line.split()))
        for path in directory.glob("samples-*.txt")
        for line in path.read_text().splitlines()
    ]
    if not samples:
        raise MeasurementError("no record reached the sink")
    begin = min(sent for sent, _ in samples) + int(warm_up_seconds * 1e9)
    latencies = sorted((arrived - sent) / 1e6 for sent, arrived in samples if sent >= begin)
    if not latencies:
        raise MeasurementError("no record sent after the warm-up reached the sink")
    return {
        "p50_ms": latencies[len(latencies) // 2],
        "p99_ms": latencies[int(len(latencies) * 0.99)],
        "max_ms": latencies[-1],
        "samples": len(latencies),
    }


def _await_port(port_file: Path, feeder: subprocess.Popen[bytes]) -> int:
    deadline = time.monotonic() + 30
    while not port_file.exists():
        if feeder.poll() is not None or time.monotonic() > deadline:
            raise MeasurementError("the feeder did not start")
        time.sleep(0.05)
    return int(port_file.read_text())


def _wait_for_quiet(plan: Plan) -> None:
    """Wait until the rest of the machine uses at most `idle_cores` cores, but no longer than `patience` seconds."""
    deadline = time.monotonic() + plan.patience
    while time.monotonic() < deadline:
        busy, start = machine_cpu_seconds(), time.perf_counter()
        time.sleep(2)
        if (machine_cpu_seconds() - busy) / (time.perf_counter() - start) <= plan.idle_cores:
            return
