"""Runs the benchmarks: `python benchmarks/run.py --jobs a,b --systems penstock,pyflink --repeat 3`.

Every system does the same work on the same machine in one session; the repeats are interleaved, so that a noisy
minute hits all systems alike. See benchmarks/README.md for what is measured and how.
"""

from __future__ import annotations

import argparse
import signal
import sys
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # so that it runs as a script, from anywhere

from benchmarks.harness import kafka
from benchmarks.jobs.catalogue import JOBS, NEXMARK, Job
from benchmarks.measure import MeasurementError, Plan, collect, measure
from benchmarks.results_table import Cell, Results, describe_machine
from benchmarks.systems.catalogue import SYSTEMS, System
from benchmarks.systems.environment import CACHE


def main() -> int:
    """Measure, print, save."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the process being measured is ended, too
    args = _parse()
    names = [name for word in args.jobs.split(",") for name in (NEXMARK if word == "nexmark" else (word,))]
    jobs = [JOBS[name] for name in names]
    systems = [SYSTEMS[name] for name in args.systems.split(",")]
    plan = Plan(
        records=args.records,
        seconds=args.seconds,
        parallelism=args.parallelism,
        timeout=args.timeout,
        warm_up_seconds=args.warm_up,
        latency_seconds=args.latency_seconds,
        rate=args.rate,
        idle_cores=args.idle_cores,
        patience=args.patience,
    )
    for system in systems:
        system.prepare()
    with ExitStack() as stack:
        if any(job.uses_kafka for job in jobs):
            stack.enter_context(kafka.broker(with_flink=any(system.package == "pyflink" for system in systems)))
        return _verify(jobs, systems, plan) if args.verify else _measure_all(args, jobs, systems, plan)


def _measure_all(args: argparse.Namespace, jobs: list[Job], systems: list[System], plan: Plan) -> int:
    about = describe_machine() | {"date": datetime.now(UTC).date().isoformat(), "repeats": args.repeat}
    results = Results([Cell(job.letter, system.name) for job in jobs for system in systems], about)
    directory = Path(args.out)
    for repeat in range(args.repeat):
        for cell in results.cells:
            _measure_cell(cell, plan, f"{repeat + 1}/{args.repeat}")
            results.save(directory)  # an interrupted session keeps what it has
    print(f"\n{results.table()}\n")
    print("saved: " + ", ".join(str(path) for path in results.save(directory)))
    return 1 if any(cell.error for cell in results.cells) else 0


def _measure_cell(cell: Cell, plan: Plan, label: str) -> None:
    system, job = SYSTEMS[cell.system], JOBS[cell.job]
    if job.letter not in system.jobs or cell.error:
        return
    print(f"[{label}] ({job.letter}) {system.name} ... ", end="", flush=True)
    try:
        result = measure(system, job, plan)
    except MeasurementError as error:
        cell.error = "failed"
        print(f"failed\n{error}", flush=True)
        return
    cell.repeats.append(result)
    if job.measures_latency:
        print(f"p50 {result['p50_ms']:.0f} ms, p99 {result['p99_ms']:.0f} ms", flush=True)
    else:
        print(
            f"{result['records_per_second']:,.0f} records/s, {result['cpu_seconds_per_million']:.1f} CPU s/M",
            flush=True,
        )


def _verify(jobs: list[Job], systems: list[System], plan: Plan) -> int:
    """Compare the results of every Flink-like system: the benchmark is fair only if all do the same work."""
    wrong = 0
    for job in jobs:
        seen = {}
        for system in systems:
            if job.letter in system.jobs and system.package != "spark" and not job.measures_latency and job.comparable:
                result = collect(system, job, plan)
                seen[system.name] = (result["count"], result["digest"])
                print(f"({job.letter}) {system.name}: {result}", flush=True)
        if len(set(seen.values())) > 1:
            wrong += 1
            print(f"({job.letter}) the systems disagree: {seen}")
    return 1 if wrong else 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add(
        "--jobs",
        default="a,b,c,d,e,f,g,l,nexmark",
        help="letters and names, and nexmark for its queries: "
        + "; ".join(f"{j.letter} {j.title}" for j in JOBS.values()),
    )
    add(
        "--systems",
        default="penstock,pyflink,pyflink-process,pyflink-thread,spark,bytewax,pathway",
        help=", ".join(SYSTEMS),
    )
    add("--records", type=int, default=20_000, help="first count; counts triple until two runs lie far enough apart")
    add("--seconds", type=float, default=4.0, help="smallest time between the two runs measured (default: 4)")
    add("--repeat", type=int, default=3)
    add("--parallelism", type=int, default=2)
    add("--timeout", type=float, default=900, help="seconds for one measured process")
    add("--warm-up", type=float, default=90, help="(l) seconds at full rate before the first record that counts")
    add("--latency-seconds", type=float, default=30, help="(l) seconds that count")
    add("--rate", type=int, default=1_000, help="(l) records per second")
    add("--idle-cores", type=float, default=0.3, help="start when the rest of the machine uses at most so many cores")
    add("--patience", type=float, default=0, help="wait so many seconds for that; 0 starts at once")
    add("--out", default=str(CACHE / "results"), help="directory for results.json, results.md and results.png")
    add("--verify", action="store_true", help="compare the systems' results on a small input instead of measuring")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
