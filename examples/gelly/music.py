"""Who listens to what: a bipartite graph of people and songs, its projection, and communities of people.

People who listen to the same songs become neighbours. Connected components and label propagation find groups of them;
triangles and clustering coefficients say how close the groups are. The Jaccard index compares songs by their listeners.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from penstock.gelly import BipartiteEdge, ExecutionEnvironment, Graph, Vertex
from penstock.gelly.bipartite import BipartiteGraph
from penstock.gelly.library import (
    GlobalClusteringCoefficient,
    GSAConnectedComponents,
    JaccardIndex,
    LabelPropagation,
    TriangleListing,
)

PLAYS = [
    BipartiteEdge("Ada", "So What", 12),
    BipartiteEdge("Ada", "Blue in Green", 3),
    BipartiteEdge("Alan", "So What", 7),
    BipartiteEdge("Alan", "Blue in Green", 5),
    BipartiteEdge("Grace", "So What", 1),
    BipartiteEdge("Grace", "Heroes", 9),
    BipartiteEdge("Linus", "Thunderstruck", 30),
    BipartiteEdge("Guido", "Thunderstruck", 2),
]


def run(env: ExecutionEnvironment) -> list[str]:
    """What the program prints."""
    people = [Vertex(name, name) for name in sorted({play.top for play in PLAYS})]
    songs = [Vertex(title) for title in sorted({play.bottom for play in PLAYS})]
    listens = BipartiteGraph.from_collection(people, songs, PLAYS, env)
    together = listens.projection_top_simple()
    # People share several songs: an edge for each. One is enough.
    distinct = sorted(set(together.get_edge_ids().collect()))
    friends = Graph.from_collection(people, distinct, env)
    groups: dict[Any, list[str]] = {}
    for person, group in friends.run(GSAConnectedComponents(10)).collect():
        groups.setdefault(group, []).append(person)
    labels = sorted(friends.run(LabelPropagation(10)).collect())
    share = friends.run(GlobalClusteringCoefficient()).get_global_clustering_coefficient_score()
    both_ways = Graph.from_collection(edges=[(play.bottom, play.top) for play in PLAYS], env=env)
    titles = {song.id for song in songs}
    similar = [pair for pair in both_ways.run(JaccardIndex()).collect() if pair.vertex_id_0 in titles]
    best = max(similar, key=lambda pair: pair.get_jaccard_index_score())
    return [
        "neighbours: " + ", ".join(f"{one}-{two}" for one, two in distinct if one < two),
        "components: " + "; ".join(", ".join(sorted(group)) for _, group in sorted(groups.items())),
        "communities: " + ", ".join(f"{person} {label}" for person, label in labels),
        f"triangles: {friends.run(TriangleListing()).collect()}, closed triplets {share:.2f}",
        f"most similar songs: {best.vertex_id_0} and {best.vertex_id_1} ({best.get_jaccard_index_score():.2f})",
    ]


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
