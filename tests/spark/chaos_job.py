"""A program to be killed while it rescales and saves itself: windows, timers, and an exactly-once sink of files.

python chaos_job.py CHECKPOINT_DIRECTORY OUTPUT_DIRECTORY RECORDS SEED
"""

import contextlib
import random
import sys
import threading
from pathlib import Path

from counting_job import FilesSink

from penstock.common import Configuration, Time, WatermarkStrategy
from penstock.common.errors import PenstockError
from penstock.common.restart_strategy import RestartStrategies
from penstock.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from penstock.datastream.state import MapStateDescriptor
from penstock.datastream.window import TumblingEventTimeWindows

KEYS = 7
BATCH = 60


class Remember(KeyedProcessFunction):
    """Each record comes out again with its timer, once."""

    def open(self, runtime_context: RuntimeContext):
        self.waiting = runtime_context.get_map_state(MapStateDescriptor("waiting"))

    def process_element(self, value, ctx):
        self.waiting.put(value, (self.waiting.get(value) or 0) + 1)
        ctx.timer_service().register_event_time_timer(value + 13)

    def on_timer(self, timestamp, ctx):
        times = self.waiting.get(timestamp - 13)
        self.waiting.remove(timestamp - 13)
        yield "timer", ctx.get_current_key(), timestamp, times


def build(env, records, sink):
    times = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda n, _: n)
    numbers = env.from_sequence(1, records).uid("numbers").assign_timestamps_and_watermarks(times)
    keyed = numbers.key_by(lambda n: n % KEYS)
    windows = keyed.window(TumblingEventTimeWindows.of(Time.milliseconds(50))).reduce(lambda a, b: a + b).uid("windows")
    remembered = keyed.process(Remember()).uid("remember")
    remembered.union(windows.map(lambda n: ("window", 0, n, 1))).sink_to(sink).uid("files")


def disturb(client, chance, directory):
    """Now and then take a savepoint, now and then change the parallelism."""
    while not client.get_job_execution_result().done():
        with contextlib.suppress(PenstockError, TimeoutError):
            if chance.random() < 0.5:
                client.trigger_savepoint(directory).result(120)
            else:
                client.rescale(chance.randint(1, 3)).result(120)
        threading.Event().wait(chance.uniform(0.2, 3))


def main(checkpoint, output, records, seed):
    configuration = Configuration.from_dict({"penstock.batch.max-records": str(BATCH), "spark.master": "local[2]"})
    env = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(2)
    env.get_checkpoint_config().set_checkpoint_storage(Path(checkpoint).as_uri())
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(20, 100))
    build(env, records, FilesSink(output))
    client = env.execute_async("chaos")
    threading.Thread(target=disturb, args=(client, random.Random(seed), output + "-savepoints"), daemon=True).start()
    client.get_job_execution_result().result()
    print("finished")  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
