"""The number of words so far, into Redis and into Elasticsearch or OpenSearch: the last value of a key stays.

python examples/connectors/store_upserts.py --redis redis://localhost:6379/0 --search http://localhost:9200
"""

from __future__ import annotations

import argparse

from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.connectors.elasticsearch import Elasticsearch7SinkBuilder, ElasticsearchEmitter
from penstock.datastream.connectors.redis import RedisSink

TEXT = ["to be or not to be", "that is the question"]


def define(env: StreamExecutionEnvironment, redis: str | None, search: str | None) -> None:
    """The job."""
    words = env.from_collection(TEXT).flat_map(lambda line: line.split())
    counts = words.map(lambda word: (word, 1)).key_by(lambda pair: pair[0]).reduce(lambda a, b: (a[0], a[1] + b[1]))
    if redis:
        counts.sink_to(RedisSink(redis, key=lambda pair: f"count:{pair[0]}", value=lambda pair: pair[1]))
    if search:
        sink = Elasticsearch7SinkBuilder().set_hosts(search)
        sink.set_emitter(ElasticsearchEmitter.static_index("words", key_field="word"))
        counts.map(lambda pair: {"word": pair[0], "count": pair[1]}).sink_to(sink.build())


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--redis")
    parser.add_argument("--search")
    options = parser.parse_args()
    if not options.redis and not options.search:
        parser.error("name at least one store")
    env = StreamExecutionEnvironment.get_execution_environment()
    define(env, options.redis, options.search)
    env.execute("count words")


if __name__ == "__main__":
    main()
