"""Runs the benchmarks: `python benchmarks/run.py --jobs a,b --systems penstock,pyflink --repeat 3`.

Every system does the same work on the same machine in one session; the repeats are interleaved, so that a noisy
minute hits all systems alike. See benchmarks/README.md for what is measured and how.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # so that it runs as a script, from anywhere

from benchmarks.harness import kafka
from benchmarks.jobs.catalogue import JOBS, NEXMARK, Job
from benchmarks.measure import MeasurementError, Plan, collect, loop_speed, measure
from benchmarks.results_table import Cell, Results, describe_machine
from benchmarks.systems import jars
from benchmarks.systems.catalogue import SYSTEMS, System
from benchmarks.systems.environment import CACHE
from penstock.testing.kafka_broker import BrokerUnavailableError

# A smoke run: every system once, every kind of job once, with runs too short for good figures.
_QUICK = ("a", "b", "d", "l", "k", "n", "q0")
_QUICK_JOB = dict.fromkeys(("pyflink", "pyflink-process", "pyflink-thread", "spark-calls", "spark", "spark-20k"), "b")
_QUICK_JOB |= {"bytewax": "b", "pathway": "d", "quix": "k"}


def main() -> int:
    """Measure, print, save."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the process being measured is ended, too
    args = _parse()
    cells = _cells(args)
    systems = [system for system in SYSTEMS.values() if any(system is wanted for _, wanted in cells)]
    plan = Plan(
        records=args.records,
        seconds=args.seconds,
        parallelism=args.parallelism,
        limit=args.limit,
        warm_up_seconds=args.warm_up,
        latency_seconds=args.latency_seconds,
        rate=args.rate,
        idle_cores=args.idle_cores,
        patience=args.patience,
    )
    with ExitStack() as stack:
        for system in systems:
            system.prepare()
        lost = _provide(stack, cells)
        cells = [cell for cell in cells if cell not in lost]
        status = _verify(cells, plan) if args.verify else _measure_all(args, cells, plan)
    return 1 if lost else status


def _provide(stack: ExitStack, cells: list[tuple[Job, System]]) -> list[tuple[Job, System]]:
    """Start a broker and fetch jars where they are needed; the cells that have to do without them."""
    lost = []
    with_broker = [(job, system) for job, system in cells if job.uses_kafka or system.package == "quix"]
    with_jars = [(job, system) for job, system in cells if system.package == "pyflink" and job.commits]
    for users, provide in (
        (with_broker, lambda: stack.enter_context(kafka.broker())),
        (with_jars, lambda: jars.provide({job.letter for job, _ in with_jars})),
    ):
        try:
            if users:
                jars.ensure_maven()
                provide()
        except BrokerUnavailableError as error:
            lost += [cell for cell in users if cell not in lost]
            print(
                f"not run: {', '.join(f'({job.letter}) {system.name}' for job, system in users)}: {error}", flush=True
            )
    return lost


def _cells(args: argparse.Namespace) -> list[tuple[Job, System]]:
    """What to measure, in order: all systems of a job one after the other, so that they meet the same machine."""
    words = args.jobs.split(",") if args.jobs else _QUICK if args.quick else JOBS
    names = [name for word in words for name in (NEXMARK if word == "nexmark" else (word,))]
    systems = args.systems.split(",") if args.systems else SYSTEMS
    for word, known in ((names, JOBS), (systems, SYSTEMS)):
        unknown = [name for name in word if name not in known]
        if unknown:
            sys.exit(f"there is no {', '.join(unknown)}; there are {', '.join(known)}")
    cells = [(JOBS[job], SYSTEMS[name]) for job in names for name in systems if job in SYSTEMS[name].jobs]
    if args.quick and not (args.jobs or args.systems):
        cells = [(job, system) for job, system in cells if _QUICK_JOB.get(system.name, job.letter) == job.letter]
    return cells


def _measure_all(args: argparse.Namespace, wanted: list[tuple[Job, System]], plan: Plan) -> int:
    directory = Path(args.out)
    results = Results.load(directory) if args.resume else Results([], {})
    results.about |= describe_machine()
    results.about["dates"] = _add(results.about.get("dates", ""), datetime.now(UTC).date().isoformat())
    results.about["seconds between the two runs of a slope"] = plan.seconds
    cells = [results.cell(job.letter, system.name) for job, system in wanted]
    for repeat in range(args.repeat):
        for number, cell in enumerate(cells):
            if len(cell.repeats) <= repeat:
                _measure_cell(cell, plan, f"{repeat + 1}/{args.repeat}, {number + 1}/{len(cells)}")
                results.save(directory, plot=False)  # an interrupted session keeps what it has
    print(f"\n{results.summary()}\n")
    print("saved: " + ", ".join(str(path) for path in results.save(directory)))
    failed = [f"({cell.job}) {cell.system}: {cell.error}" for cell in cells if cell.error and not cell.repeats]
    if failed:
        print("without a figure: " + "; ".join(failed))
    return 1 if failed else 0


def _add(known: str, more: str) -> str:
    return ", ".join(dict.fromkeys([*filter(None, known.split(", ")), more]))


def _measure_cell(cell: Cell, plan: Plan, label: str) -> None:
    system, job = SYSTEMS[cell.system], JOBS[cell.job]
    print(f"[{label}] ({job.letter}) {system.name} ... ", end="", flush=True)
    start = time.monotonic()
    speed = loop_speed()
    try:
        result = measure(system, job, plan)
    except MeasurementError as error:
        cell.error = error.verdict
        print(error, flush=True)
        return
    cell.error = None
    cell.repeats.append({**result, "loop_speed": speed, "at": datetime.now(UTC).isoformat(timespec="seconds")})
    if job.measures_latency:
        figure = f"p50 {result['p50_ms']:.1f} ms, p99 {result['p99_ms']:.1f} ms"
    else:
        figure = f"{result['records_per_second']:,.0f} records/s, {result['cpu_seconds_per_million']:.1f} CPU s/M"
    print(f"{figure} (took {time.monotonic() - start:.0f} s)", flush=True)


def _verify(cells: list[tuple[Job, System]], plan: Plan) -> int:
    """Compare the results of all systems: the benchmark is fair only if all do the same work."""
    wrong = []
    for job in JOBS.values():
        seen = {}
        for system in (system for wanted, system in cells if wanted is job):
            if job.measures_latency or not job.comparable:
                continue
            try:
                result = collect(system, job, plan)
            except MeasurementError as error:
                wrong.append(f"({job.letter}) {system.name}: {error.verdict}")
                print(f"({job.letter}) {system.name}: {error}", flush=True)
                continue
            seen[system.name] = (result["count"], result["digest"])
            print(f"({job.letter}) {system.name}: {result}", flush=True)
        if len(set(seen.values())) > 1:
            wrong.append(f"({job.letter}) the systems disagree: {seen}")
    print("\n".join(wrong) if wrong else "all agree")
    return 1 if wrong else 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add(
        "--jobs",
        help="letters and names, and nexmark for its queries (default: all): "
        + "; ".join(f"{j.letter} {j.title}" for j in JOBS.values()),
    )
    add("--systems", help=f"{', '.join(SYSTEMS)} (default: all)")
    add("--quick", action="store_true", help="a smoke run of some minutes: every system once, short runs")
    add("--resume", action="store_true", help="keep what is in the results already and measure what is missing")
    add("--seconds", type=float, help="time between the two runs of a slope (default: 8, quick: 2)")
    add("--repeat", type=int, default=1)
    add("--parallelism", type=int, default=2)
    add("--limit", type=float, default=300, help="seconds after which a measurement is ended; a latency one later")
    add("--warm-up", type=float, help="latency: seconds at full rate before the first record counts (90, quick: 15)")
    add("--latency-seconds", type=float, help="latency: seconds that count (30, quick: 5)")
    add("--rate", type=int, help="latency: records per second (default: what the job says)")
    add("--idle-cores", type=float, default=0.3, help="start when the rest of the machine uses at most so many cores")
    add("--patience", type=float, default=0, help="wait so many seconds for that; 0 starts at once")
    add("--out", default=str(CACHE / "results"), help="directory for results.json, results.md and results.png")
    add("--verify", action="store_true", help="compare the systems' results on a small input instead of measuring")
    add("--records", type=int, default=20_000, help="the size of that input")
    args = parser.parse_args()
    for name, usual, quick in (("seconds", 8.0, 2.0), ("warm_up", 90.0, 15.0), ("latency_seconds", 30.0, 5.0)):
        if getattr(args, name) is None:
            setattr(args, name, quick if args.quick else usual)
    return args


if __name__ == "__main__":
    sys.exit(main())
