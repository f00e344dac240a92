"""File sinks under test, and what they have written."""

from crashing import troublesome

from penstock.common.serialization import Encoder
from penstock.connectors.file_system import BucketAssigner, FileSink

LINES = Encoder.simple_string_encoder()
FLAT = BucketAssigner.base_path_bucket_assigner()


def visible(directory):
    """What a reader sees: the lines of files whose names do not begin with a dot."""
    files = sorted(path for path in directory.rglob("*") if path.is_file() and not path.name.startswith("."))
    return {str(path.relative_to(directory)): path.read_text().splitlines() for path in files}


def hidden(directory):
    return sorted(path.name for path in directory.rglob(".*") if path.is_file())


def numbers(directory):
    return sorted(int(line) for lines in visible(directory).values() for line in lines)


def row_sink(directory, policy=None, assigner=FLAT, **options):
    builder = FileSink.for_row_format(directory, LINES).with_bucket_assigner(assigner)
    if policy is not None:
        builder.with_rolling_policy(policy)
    if "check_interval" in options:
        builder.with_bucket_check_interval(options["check_interval"])
    if "strategy" in options:
        builder.enable_compact(options["strategy"], options["compactor"])
    return builder.build()


def sequence_to(sink, records=40, parallelism=None):
    def build(env):
        stream = env.from_sequence(1, records).rebalance().map(troublesome)
        end = stream.sink_to(sink)
        if parallelism is not None:
            end.set_parallelism(parallelism)

    return build
