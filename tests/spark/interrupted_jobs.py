"""Jobs for which Ctrl-C is pressed, one after the other on one Spark: each says when it is in the middle of something.

    python interrupted_jobs.py DIRECTORY

Lines that begin with ``now`` ask for Ctrl-C.
"""

import os
import signal
import sys
import threading
import time

from penstock.common import Configuration, JobStatus
from penstock.datastream import MapFunction, RuntimeExecutionMode, StreamExecutionEnvironment


def environment(mode=RuntimeExecutionMode.STREAMING):
    env = StreamExecutionEnvironment(Configuration.from_dict({"penstock.batch.max-records": "1"})).set_parallelism(1)
    return env.set_runtime_mode(mode)


def say(text):
    """One line, at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


class Sleepy(MapFunction):
    """Falls asleep over its third record."""

    def __init__(self, says):
        self.says = says

    def map(self, value):
        if value == 3:
            if self.says:
                say(self.says)
            time.sleep(3_600)
        return value


def sleeping(says, mode=RuntimeExecutionMode.STREAMING):
    env = environment(mode)
    env.from_sequence(1, 1_000_000).key_by(lambda value: value % 2).map(Sleepy(says)).filter(lambda v: False).print()
    return env


def interrupted(name, run):
    try:
        run()
    except KeyboardInterrupt as interrupt:
        frames, trace = 0, interrupt.__traceback__
        while trace is not None:
            frames, trace = frames + 1, trace.tb_next
        say(f"{name} was interrupted, {'short' if frames <= 6 else frames} traceback")
    else:
        say(f"{name} was not interrupted")


def wait_in_savepoint(directory):
    """The savepoint waits for a batch, and that for its function."""
    env = sleeping("")
    client = env.execute_async("saving")
    while client.progress.checkpoint_id < 2:
        time.sleep(0.01)
    taken = client.trigger_savepoint(directory)
    try:
        say("now in a savepoint")
        taken.result()
    finally:
        client.cancel().result()
        say(f"the job is {client.get_job_status().result().name}")


def impatient():
    """Ctrl-C again while the job is being cancelled."""
    env = sleeping("now twice")

    def press_again(client):
        while client.get_job_status().result() is not JobStatus.CANCELLING:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    env._job_listeners.append(lambda client: threading.Thread(target=press_again, args=(client,), daemon=True).start())
    env.execute()


def works_still():
    env = environment()
    say(str(sorted(env.from_sequence(1, 3).map(lambda value: value * 2).execute_and_collect())))


def main(directory):
    interrupted("a function", lambda: sleeping("now in a function").execute())
    interrupted("a batch job", lambda: sleeping("now in a batch job", RuntimeExecutionMode.BATCH).execute())
    interrupted("a savepoint", lambda: wait_in_savepoint(directory))
    interrupted("an impatient user", impatient)
    works_still()
    client = sleeping("now and for the last time").execute_async("detached")
    client.get_job_execution_result().result()


if __name__ == "__main__":
    main(*sys.argv[1:])
