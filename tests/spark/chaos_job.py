"""A job to be disturbed, and a program around it to be killed.

The job has windows, timers, a pattern with a time limit, and an exactly-once sink of files.

python chaos_job.py DIRECTORY SEED PHASE DOOMED JOB...

The program runs some jobs, since it takes longer to start than to run one, and saves and rescales them at random
moments. It dies by kill -9 when the job DOOMED is in that phase; if there is none, it stops each job with a savepoint
when everything was seen. With the word "take-over" for the phase it takes the jobs from the driver that runs them.
"""

import contextlib
import json
import os
import random
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

from chaos_phases import Blow, Hit, phase_of, running_tasks, take_aim
from counting_job import FilesSink
from processes import descendants, kill

from penstock.cep import CEP, Pattern, PatternProcessFunction, TimedOutPartialMatchHandler
from penstock.common import Configuration, Time, WatermarkStrategy
from penstock.common.errors import PenstockError, SavepointError
from penstock.common.restart_strategy import RestartStrategies
from penstock.connectors.number_seq import NumberSequenceSource
from penstock.connectors.ranges import RangeEnumerator, even_splits
from penstock.core.source import Boundedness
from penstock.datastream import KeyedProcessFunction, OutputTag, RuntimeContext, StreamExecutionEnvironment
from penstock.datastream.state import MapStateDescriptor, ReducingStateDescriptor
from penstock.datastream.window import TumblingEventTimeWindows
from penstock.state_processor import SavepointReader

KEYS = 7
RECORDS = 480
HALF = RECORDS // 2  # two splits, side by side in event time
BATCH = 60
DELAY = 13
LIMIT = 30  # of the pattern; the events of a key are 7 apart
TOO_LATE = OutputTag("too late")
WAIT_SECONDS = 600


class OpenEnded(NumberSequenceSource):
    """Numbers, and then nothing more, but no end: what is open stays open."""

    def get_boundedness(self):
        return Boundedness.CONTINUOUS_UNBOUNDED

    def create_enumerator(self, parallelism):
        return OpenEndedEnumerator(even_splits(1, RECORDS + 1, 2))


class OpenEndedEnumerator(RangeEnumerator):
    def is_finished(self, split, offset):
        return False


class Remember(KeyedProcessFunction):
    """Each record comes out at once, and with its timer; all of them add up."""

    def open(self, runtime_context: RuntimeContext):
        self.waiting = runtime_context.get_map_state(MapStateDescriptor("waiting"))
        self.total = runtime_context.get_reducing_state(ReducingStateDescriptor("total", lambda a, b: a + b))

    def process_element(self, value, ctx):
        time = ctx.timestamp()
        self.waiting.put(time, (self.waiting.get(time) or 0) + 1)
        self.total.add(value)
        ctx.timer_service().register_event_time_timer(time + DELAY)
        yield "seen", ctx.get_current_key(), value, 1

    def on_timer(self, timestamp, ctx):
        times = self.waiting.get(timestamp - DELAY)
        self.waiting.remove(timestamp - DELAY)
        yield "timer", ctx.get_current_key(), timestamp, times


class Climbs(PatternProcessFunction, TimedOutPartialMatchHandler):
    """The records of a match; those of a partial match go to a side output when its limit has passed."""

    def process_match(self, match, ctx):
        yield "match", *numbers_of(match)

    def process_timed_out_match(self, match, ctx):
        ctx.output(TOO_LATE, ("timeout", *numbers_of(match)))


def numbers_of(match):
    """The first and the last record, and how many there are."""
    numbers = [number for events in match.values() for number in events]
    return numbers[0], numbers[-1], len(numbers)


def climbs():
    """A record, those that a loop takes, and a last one: several partial matches of a key are alive at a time."""
    first = Pattern.begin("low").where(lambda n: n % 3 == 0).followed_by("middle").where(lambda n: n % 2 == 0)
    return first.one_or_more().followed_by("high").where(lambda n: n % 5 == 0).within(LIMIT)


def build(env, output):
    times = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda n, _: (n - 1) % HALF)
    numbers = env.from_source(OpenEnded(1, RECORDS), times, "numbers").uid("numbers")
    keyed = numbers.key_by(lambda n: n % KEYS)
    windows = keyed.window(TumblingEventTimeWindows.of(Time.milliseconds(50))).reduce(lambda a, b: a + b).uid("windows")
    remembered = keyed.process(Remember()).uid("remember")
    matches = CEP.pattern(keyed, climbs()).process(Climbs()).uid("pattern")
    results = remembered.union(windows.map(lambda n: ("window", 0, n, 1)), matches, matches.get_side_output(TOO_LATE))
    results.sink_to(FilesSink(str(output))).uid("files")


TAKE_OVER = "take-over"


def environment(checkpoint, *, take_over=False, **options):
    configuration = Configuration.from_dict({"penstock.batch.max-records": str(BATCH), "spark.master": "local[2]"})
    configuration.set_boolean("penstock.lease.take-over", value=take_over)
    env = StreamExecutionEnvironment(configuration, **options).set_parallelism(2)
    env.get_checkpoint_config().set_checkpoint_storage(Path(checkpoint).as_uri())
    return env.set_restart_strategy(RestartStrategies.fixed_delay_restart(30, 20))


def committed(output):
    """What the sink shows, in an order of its own."""
    return sorted(tuple(record) for path in output.glob("*.json") for record in json.loads(path.read_text()))


def everything_seen(output):
    return sum(kind == "seen" for kind, *_ in committed(output)) >= RECORDS


def state_in(savepoint):
    """All state of a savepoint, in an order of its own."""
    reader = SavepointReader.read(savepoint).verify()
    windows = ((key, window.start, window.end, value) for key, window, value in reader.read_window_state("windows"))
    return {
        "waiting": sorted(
            (key, sorted(value.items())) for key, value in reader.read_keyed_state("remember", "waiting")
        ),
        "total": sorted(reader.read_keyed_state("remember", "total")),
        "timers": sorted((key, time) for key, _, time, _ in reader.read_timers("remember")),
        "windows": sorted(windows),
        "partial matches": partial_matches(reader),
        "waiting events": sorted(reader.read_keyed_state("pattern", "waiting-events")),
        "positions": reader.source_positions("numbers"),
    }


def partial_matches(reader):
    """(key, state of the automaton, records taken) of each; the numbers in the state depend on the batches."""
    taken = dict(reader.read_keyed_state("pattern", "taken-events"))
    return sorted(
        (key, state, path(taken[key], last))
        for key, runs in reader.read_keyed_state("pattern", "partial-matches")
        for state, here in runs.items()
        for _, last, *_ in here
    )


def path(nodes, last):
    """The records of a partial match."""
    if last < 0:
        return []
    before, *_, record = nodes[last]
    return [*path(nodes, before), record]


def stop(client, output, directory):
    """Wait until everything was seen, then stop with a savepoint; returns its path."""
    result = client.get_job_execution_result()
    while True:
        if result.done():
            result.result()  # raises what went wrong
            raise AssertionError("the job ended before it had seen everything")
        if everything_seen(output):
            with contextlib.suppress(SavepointError):  # a worker that was to write it was killed
                return client.stop_with_savepoint(False, str(directory)).result(WAIT_SECONDS)
        threading.Event().wait(0.05)


def disturb(client, chance, directory):
    """Take a savepoint or change the parallelism, a few times."""
    for _ in range(chance.randint(1, 3)):
        threading.Event().wait(chance.uniform(0.2, 2))
        if client.get_job_execution_result().done():
            break
        with contextlib.suppress(PenstockError, TimeoutError):
            if chance.random() < 0.5:
                client.trigger_savepoint(directory).result(WAIT_SECONDS)
            else:
                client.rescale(chance.randint(1, 3)).result(WAIT_SECONDS)


class Program:
    """Some jobs on one Spark, each in a directory of its own."""

    def __init__(self, directory, seeds, *, take_over=False):
        self.directory = directory
        self.clients = {}
        for seed in seeds:
            output = directory / seed / "output"
            output.mkdir(parents=True, exist_ok=True)
            env = environment(directory / seed / "checkpoint", take_over=take_over)
            build(env, output)
            self.clients[seed] = env.execute_async(f"chaos {seed}")

    def finish(self, seed):
        path = stop(self.clients[seed], self.directory / seed / "output", self.directory / seed / "savepoints")
        self.clients[seed].get_job_execution_result().result(WAIT_SECONDS)
        (self.directory / seed / "finished").write_text(path)

    def die(self, blow, doomed):
        """Write down what is hit, and end at once: this process, and perhaps the JVM with it."""
        client = self.clients[doomed]
        first = len(list((self.directory / doomed / "output").glob("*.json")))
        while len(list((self.directory / doomed / "output").glob("*.json"))) < first + blow.commits:
            if client.get_job_execution_result().done():
                client.get_job_execution_result().result()  # raises what went wrong
            threading.Event().wait(0.01)
        deed, processes = take_aim(
            client, blow, str(self.directory / doomed / "savepoints"), lambda: list(descendants(os.getpid()).items())
        )
        jvm = [pid for (pid, _), command in processes if "java" in command.split(" ")[0]]
        with_jvm = random.Random(blow.seed).random() < 0.5
        tasks = running_tasks(client)
        target = "driver and its JVM" if with_jvm else "driver"
        hits = {
            seed: Hit(
                target,
                1 + with_jvm,
                blow.aim if seed == doomed else None,
                phase_of(client),
                None,
                tasks,
                deed.tries,
                restarts=1,  # of the program
            )
            for seed, client in self.clients.items()
        }
        record = {"left": [key for key, _ in processes], "hits": {seed: asdict(hit) for seed, hit in hits.items()}}
        (self.directory / "last-words").write_text(json.dumps(record))
        kill([*(jvm if with_jvm else ()), os.getpid()])


def main(directory, life, aim, doomed, *seeds):
    """``doomed``: the job whose phase decides when this process dies; "-": it is not to die."""
    chance = random.Random(int(life))
    program = Program(directory, seeds, take_over=aim == TAKE_OVER)
    for seed, client in program.clients.items():
        if seed != doomed:
            arguments = (client, random.Random(chance.randrange(1 << 32)), str(directory / seed / "savepoints"))
            threading.Thread(target=disturb, args=arguments, daemon=True).start()
    if doomed in program.clients:
        program.die(Blow.at(aim or None, chance), doomed)
    with ThreadPoolExecutor(len(seeds)) as pool:
        list(pool.map(program.finish, seeds))
    print("finished")  # noqa: T201


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
