"""Flights between cities: shortest paths with three kinds of iterations, and the busiest airports.

Vertices are cities, edges are flights with their hours. The program finds how long it takes to get everywhere from
Berlin, first with a ready algorithm, then with functions for one vertex, then with functions on arrays. All three give
the same. PageRank says which airports matter.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from penstock.gelly import Edge, EdgeDirection, ExecutionEnvironment, Graph, Vertex
from penstock.gelly.library import PageRank, SingleSourceShortestPaths
from penstock.gelly.pregel import BatchComputeFunction, ComputeFunction, MessageCombiner, VertexBatch

START = "Berlin"
FLIGHTS = [
    Edge("Berlin", "London", 2.0),
    Edge("Berlin", "Istanbul", 3.0),
    Edge("London", "New York", 8.0),
    Edge("Istanbul", "Singapore", 10.5),
    Edge("London", "Singapore", 13.5),
    Edge("New York", "San Francisco", 6.5),
    Edge("Singapore", "Sydney", 8.0),
    Edge("San Francisco", "Sydney", 14.5),
    Edge("Sydney", "Singapore", 8.0),
    Edge("New York", "London", 7.0),
]


class Shortest(ComputeFunction):
    """One vertex at a time: if a message brings a shorter way, pass it on."""

    def compute(self, vertex: Vertex, messages: Sequence[float]) -> None:
        """Compute a superstep of a vertex."""
        hours = min(messages, default=vertex.value)
        if hours < vertex.value or (self.get_superstep_number() == 1 and hours < math.inf):
            self.set_new_vertex_value(hours)
            for flight in self.get_edges():
                self.send_message_to(flight.target, hours + flight.value)


class ShortestMessage(MessageCombiner):
    """Of several ways to the same city, only the shortest one is sent."""

    def combine_messages(self, messages: Sequence[float]) -> None:
        """Combine the messages for a vertex."""
        self.send_combined_message(min(messages))


class ShortestOnArrays(BatchComputeFunction):
    """The same for all vertices of a partition at once."""

    def compute(self, batch: VertexBatch) -> None:
        """Compute a superstep of a partition."""
        hours = batch.state["value"]
        shorter = batch.received & (batch.messages < hours) if batch.superstep_number > 1 else hours < math.inf
        if batch.superstep_number > 1:
            hours[shorter] = batch.messages[shorter]
        batch.send_along_edges(hours[batch.edge_rows] + batch.edge_values, shorter[batch.edge_rows])


def hours_text(found: list[Vertex]) -> str:
    """Cities and hours, the nearest first."""
    return ", ".join(f"{city} {hours:g}" for city, hours in sorted(found, key=lambda vertex: (vertex.value, vertex.id)))


def run(env: ExecutionEnvironment) -> list[str]:
    """What the program prints."""
    flights = Graph.from_collection(edges=FLIGHTS, env=env, vertex_initializer=_hours_at_start)
    by_library: Any = flights.run(SingleSourceShortestPaths(START, 10))
    by_vertex = flights.run_vertex_centric_iteration(Shortest(), ShortestMessage(), 10)
    by_arrays = flights.run_vertex_centric_iteration(ShortestOnArrays(), np.minimum, 10)
    fastest = flights.reduce_on_edges(np.minimum, EdgeDirection.IN).collect()
    ranks = sorted(flights.run(PageRank(0.85, 20)).collect(), key=lambda rank: -rank.page_rank_score)
    return [
        f"library:  {hours_text(by_library.collect())}",
        f"vertices: {hours_text(by_vertex.get_vertices().collect())}",
        f"arrays:   {hours_text(by_arrays.get_vertices().collect())}",
        f"shortest flight to each city: {hours_text([Vertex(*each) for each in fastest])}",
        "ranks:    " + ", ".join(f"{city} {score:.3f}" for city, score in ranks[:3]),
    ]


def _hours_at_start(city: str) -> float:
    return 0.0 if city == START else math.inf


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program on Spark, or in this process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--in-process", action="store_true", help="do without Spark")
    options = parser.parse_args(argv)
    if options.in_process:
        env = ExecutionEnvironment.create_collections_environment()
    else:
        env = ExecutionEnvironment.get_execution_environment()
    print("\n".join(run(env)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
