"""Messages that cannot be read go to a side output, and from there into a file; the others are counted.

python examples/connectors/dead_letters.py --directory /tmp/letters
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from penstock.common import Types
from penstock.datastream import DataStream, OutputTag, StreamExecutionEnvironment
from penstock.datastream.connectors.file_system import BucketAssigner, FileSink
from penstock.datastream.formats import decode
from penstock.datastream.formats.json import JsonLinesEncoder, JsonRowDeserializationSchema

MESSAGES = [
    b'{"user": "ada", "clicks": 3}',
    b"garbage",
    b'{"user": "alan", "clicks": "two"}',
    b'{"user": "ada", "clicks": 4}',
]
CLICKS = Types.ROW_NAMED(["user", "clicks"], [Types.STRING(), Types.INT()])
DEAD = OutputTag("dead letters")


def define(env: StreamExecutionEnvironment, directory: str) -> DataStream:
    """The clicks of each user so far."""
    schema = JsonRowDeserializationSchema.builder().type_info(CLICKS).build()
    clicks = decode(env.from_collection(MESSAGES), schema, on_error=DEAD)
    letters = clicks.get_side_output(DEAD).map(lambda letter: {"message": letter.message, "error": letter.error})
    letters.sink_to(
        FileSink.for_row_format(directory, JsonLinesEncoder())
        .with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
        .build()
    )
    return clicks.map(lambda row: (row.user, row.clicks)).key_by(lambda pair: pair[0]).sum(1)


def main() -> None:
    """Runs the job and shows the dead letters."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--directory", help="where the dead letters go (default: a temporary directory)")
    directory = parser.parse_args().directory or tempfile.mkdtemp()
    env = StreamExecutionEnvironment.get_execution_environment()
    define(env, directory).print()
    env.execute("clicks")
    for path in sorted(Path(directory).iterdir()):
        print(path.read_text(encoding="utf-8"), end="")


if __name__ == "__main__":
    main()
