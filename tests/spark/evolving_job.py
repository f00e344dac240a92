"""A program of which there are several versions: counts records by key in objects of a class of its own.

python evolving_job.py VERSION CHECKPOINT_DIRECTORY OUTPUT_DIRECTORY RECORDS

The first version stops when it has committed some batches; the others go on to the end, if they may.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

from counting_job import BATCH, KEYS
from stopping_sink import StoppingSink, enough

from penstock.common import Configuration
from penstock.common.errors import JobCancelledError
from penstock.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from penstock.datastream.state import ValueStateDescriptor

VERSION = sys.argv[1]

if VERSION == "first":

    @dataclass
    class Tally:
        count: int = 0
elif VERSION == "field added":

    @dataclass(slots=True)
    class Tally:
        unit: str = "records"
        count: int = 0
else:

    @dataclass
    class Tally:
        unit: str
        count: int = 0


class Count(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.tally = runtime_context.get_state(ValueStateDescriptor("tally"))

    def process_element(self, value, ctx):
        tally = self.tally.value() or Tally()
        tally.count += 1
        self.tally.update(tally)
        yield ctx.get_current_key(), tally.count, getattr(tally, "unit", None)


def main(checkpoint, output, records):
    configuration = Configuration.from_dict({"penstock.batch.max-records": str(BATCH), "spark.master": "local[2]"})
    env = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(2)
    env.get_checkpoint_config().set_checkpoint_storage(Path(checkpoint).as_uri())
    numbers = env.from_sequence(1, records).uid("numbers")
    counted = numbers.key_by(lambda n: n % KEYS).process(Count()).uid("count")
    counted.sink_to(StoppingSink(output)).uid("files")
    client = env.execute_async("count")
    result = client.get_job_execution_result()
    if VERSION == "first":
        result.add_done_callback(lambda _: enough.set())  # it has failed
        enough.wait()
        client.cancel().result()
        try:
            result.result()
        except JobCancelledError:
            print("stopped")  # noqa: T201
    else:
        result.result()
        print("finished")  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[2], sys.argv[3], int(sys.argv[4]))
