"""Graphs: PageRank, connected components and shortest paths beside GraphX, on a random graph (R-MAT).

    python benchmarks/graphs.py --edges 1000000

GraphX is part of Spark. It is what GraphFrames calls for PageRank and shortest paths and, with ``algorithm="graphx"``,
for connected components; so GraphFrames takes the time of GraphX and that of its conversion from and to DataFrames.

Each system gets a process of its own, two cores, and the same text file of edges. A job begins with the edges in Spark
and ends when every vertex has its result. Figures are seconds of the clock and CPU seconds of the whole process tree.
The answers of both systems are compared, and the peak memory of the largest Python worker is shown.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

from benchmarks.harness.cpu import tree_cpu_seconds
from penstock.gelly import ExecutionEnvironment, Graph, batch
from penstock.gelly.generator import RMatGraph
from penstock.gelly.library import ConnectedComponents, PageRank, SingleSourceShortestPaths

ITERATIONS = 10
LIMIT = 100  # of supersteps, far more than any of these graphs needs
SYSTEMS = ("penstock", "graphx")


def write_edges(edges: int, path: Path) -> int:
    """Write an R-MAT graph, 16 edges for each vertex, as lines of two ids; returns a vertex with many edges."""
    env = ExecutionEnvironment.create_collections_environment(1)
    table = RMatGraph(env, edges // 16, edges, seed=7).generate().get_edges().to_arrow()
    source, target = table["source"].to_numpy(), table["target"].to_numpy()
    with path.open("w") as file:
        for start in range(0, edges, 1 << 20):
            pairs = zip(
                source[start : start + (1 << 20)].tolist(), target[start : start + (1 << 20)].tolist(), strict=True
            )
            file.writelines(f"{one} {two}\n" for one, two in pairs)
    return int(np.argmax(np.bincount(target)))


def timed(job: Callable[[], Any]) -> tuple[dict[str, float], Any]:
    """The time of a job, and what it returns."""
    cpu, wall = tree_cpu_seconds(), time.monotonic()
    found = job()
    return {"wall": time.monotonic() - wall, "cpu": tree_cpu_seconds() - cpu}, found


def summary(values: Any) -> list[int]:
    """What the answers of two systems are compared by: how many there are, how many different ones, their sum."""
    finite = values[np.isfinite(values)]
    return [len(finite), len(np.unique(finite)), int(finite.sum())]


def run_penstock(path: str, landmark: int, parallelism: int) -> dict[str, Any]:
    """The jobs with Gelly's library."""
    env = ExecutionEnvironment.get_execution_environment(parallelism=parallelism).print_progress(True)
    edges = Graph.from_csv(path, env=env, delimiter=" ", vertex_initializer=batch(lambda table: table["id"]))
    load, _ = timed(edges.number_of_vertices)
    ones = edges.map_edges(batch(lambda table: np.ones(table.num_rows)))

    def job(run: Callable[[], Any]) -> tuple[dict[str, float], Any]:
        """Count the results, so that all of them are computed."""

        def counted() -> Any:
            found = run()
            found.count()
            return found

        return timed(counted)

    ranks, _ = job(lambda: edges.run(PageRank(0.85, ITERATIONS)))
    components, found = job(lambda: edges.run(ConnectedComponents(LIMIT)))
    paths, distances = job(lambda: ones.reverse().run(SingleSourceShortestPaths(landmark, LIMIT)))
    answers = {
        name: summary(data.to_arrow()["value"].to_numpy())
        for name, data in (("components", found), ("paths", distances))
    }
    return {
        "times": {"load": load, "page rank": ranks, "components": components, "shortest paths": paths},
        "answers": answers,
        "worker memory": max(_peaks_of_workers(), default=0),
    }


def _peaks_of_workers() -> list[int]:
    """The peak memory of each Python worker so far, in megabytes."""
    parents, peaks = {}, {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            status = (entry / "status").read_text()
            command = (entry / "cmdline").read_bytes()
        except OSError:
            continue  # ended meanwhile
        parents[int(entry.name)] = int(status.partition("PPid:")[2].split()[0])
        if b"pyspark.daemon" in command:
            peaks[int(entry.name)] = int(status.partition("VmHWM:")[2].split()[0]) >> 10
    return [peak for pid, peak in peaks.items() if _descends(pid, parents)]


def _descends(pid: int, parents: dict[int, int]) -> bool:
    """Whether this process has started the other one, or one that has."""
    while pid in parents and pid != os.getpid():
        pid = parents[pid]
    return pid == os.getpid()


def run_graphx(path: str, landmark: int, parallelism: int) -> dict[str, Any]:
    """The jobs with GraphX, called through py4j."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.driver.memory", "4g")
    spark = builder.config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    jvm: Any = spark.sparkContext._jvm
    graphx = jvm.org.apache.spark.graphx
    integers = getattr(getattr(jvm.scala.reflect, "ClassTag$"), "MODULE$").Int()
    level = jvm.org.apache.spark.storage.StorageLevel.MEMORY_AND_DISK()
    context = spark.sparkContext._jsc.sc()

    def load_edges() -> Any:
        graph = graphx.GraphLoader.edgeListFile(context, path, False, parallelism, level, level)
        graph.vertices().count()
        return graph

    load, graph = timed(load_edges)
    seeds = jvm.java.util.stream.LongStream.range(landmark, landmark + 1).boxed().toList()
    targets = jvm.scala.jdk.javaapi.CollectionConverters.asScala(seeds).toSeq()

    def job(run: Callable[[], Any]) -> tuple[dict[str, float], Any]:
        def counted() -> Any:
            found = run().vertices()
            found.count()
            return found

        return timed(counted)

    ranks, _ = job(lambda: graphx.lib.PageRank.run(graph, ITERATIONS, 0.15, integers, integers))
    components, found = job(lambda: graphx.lib.ConnectedComponents.run(graph, integers, integers))
    paths, distances = job(lambda: graphx.lib.ShortestPaths.run(graph, targets, integers))
    with tempfile.TemporaryDirectory() as scratch:
        found.saveAsTextFile(f"{scratch}/components")
        distances.saveAsTextFile(f"{scratch}/paths")
        # Lines are (vertex,component) and (vertex,Map(landmark -> distance)).
        numbers = {
            "components": _last_numbers(Path(scratch, "components"), r",(\d+)\)"),
            "paths": _last_numbers(Path(scratch, "paths"), r"-> (\d+)\)"),
        }
    return {
        "times": {"load": load, "page rank": ranks, "components": components, "shortest paths": paths},
        "answers": {name: summary(values) for name, values in numbers.items()},
        "worker memory": 0,
    }


def _last_numbers(directory: Path, pattern: str) -> Any:
    found = [re.findall(pattern, part.read_text()) for part in directory.glob("part-*")]
    return np.array([float(number) for part in found for number in part])


def measure(system: str, path: Path, landmark: int, parallelism: int) -> dict[str, Any]:
    """Run a system in a process of its own."""
    command = [sys.executable, __file__, "--system", system, "--path", str(path), "--landmark", str(landmark)]
    command += ["--parallelism", str(parallelism)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, start_new_session=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> int:
    """Measure, compare the answers, print a table; 1 if the answers differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--edges", type=int, default=1_000_000)
    parser.add_argument("--parallelism", type=int, default=2, help="partitions of the graph")
    parser.add_argument("--systems", default=",".join(SYSTEMS))
    parser.add_argument("--system", help=argparse.SUPPRESS)
    parser.add_argument("--path", help=argparse.SUPPRESS)
    parser.add_argument("--landmark", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.system:
        run = {"penstock": run_penstock, "graphx": run_graphx}[options.system]
        print(json.dumps(run(options.path, options.landmark, options.parallelism)), flush=True)
        return 0
    with tempfile.TemporaryDirectory(prefix="penstock-graphs-") as scratch:
        path = Path(scratch, "edges.txt")
        landmark = write_edges(options.edges, path)
        found = {name: measure(name, path, landmark, options.parallelism) for name in options.systems.split(",")}
    print(f"{options.edges:,} edges, {options.parallelism} partitions")
    for job in next(iter(found.values()))["times"]:
        for name, results in found.items():
            cost = results["times"][job]
            print(f"{job:16} {name:10} {cost['wall']:8.1f} s {cost['cpu']:8.1f} CPU s")
    for name, results in found.items():
        print(f"answers of {name}: {results['answers']}, largest Python worker {results['worker memory']} MB")
    answers = [results["answers"] for results in found.values()]
    return 0 if all(each == answers[0] for each in answers) else 1


if __name__ == "__main__":
    sys.exit(main())
