"""What a job is doing at a moment, and blows that are struck when it does a certain thing.

A blow has a seed of its own: it decides what is done to the job, in which phase something is killed, and what. Two runs
with the same seed aim alike; what they hit is written down (see chaos_log.py).
"""

import contextlib
import random
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from processes import kill, wait_until

from penstock.common.errors import PenstockError
from penstock.common.job_status import JobStatus

PATIENCE_SECONDS = 240
PHASE_SECONDS = 20
MOST_TRIES = 8
BATCH, BETWEEN, STARTING = "batch", "between batches", "starting"
SAVEPOINT, SAVEPOINT_ASKED = "savepoint", "savepoint asked for"
RESCALE_ASKED = "rescale asked for"
RESCALES = RESCALE_SAVING, RESCALE_HANDOVER, RESCALE_RESTORING = (
    "rescale saving",
    "rescale handover",
    "rescale restoring",
)
AIMS = (SAVEPOINT, RESCALE_SAVING, BATCH, None, SAVEPOINT, RESCALE_RESTORING, RESCALE_HANDOVER, None)
"""Where kills are aimed at, by seed; None: at any moment."""


def phase_of(client: Any) -> str:
    """What the job does right now, as its driver knows it."""
    job = client.job
    master = job._master
    tickets = job.life.savepoints
    writing = bool(tickets._offsets)
    if master.stopped_with is not None and master.stopped_with.parallelism is not None:
        return RESCALE_HANDOVER
    if any(ticket.parallelism is not None for ticket in list(tickets._waiting)):
        return RESCALE_SAVING if writing and job.status is JobStatus.RUNNING else RESCALE_ASKED
    if job.is_restoring:
        return RESCALE_RESTORING
    if job.status is not JobStatus.RUNNING:
        return STARTING
    if writing:
        return SAVEPOINT
    if tickets.pending:
        return SAVEPOINT_ASKED
    batch = master.checkpoints.batch
    return BATCH if batch is not None and batch.end.checkpoint_id > master.progress.checkpoint_id else BETWEEN


def running_tasks(client: Any) -> int:
    """How many tasks Spark's scheduler has given out and not got back."""
    scheduler = client.job._session.sparkContext._jsc.sc().taskScheduler()
    return sum(map(int, re.findall(r"-> (\d+)", scheduler.runningTasksByExecutors().toString())))


@dataclass(frozen=True)
class Blow:
    """What is to be done: wait for some commits, begin something, wait for a phase, kill."""

    seed: int
    commits: int
    act: str | None
    aim: str | None
    parallelism: int
    delay: float
    at_work: bool = False
    """Not before tasks run: a worker that waits for work is replaced, without an effect."""

    @staticmethod
    def of(seed: int, number: int) -> "Blow":
        """The first blow of a run is aimed by its seed, at everything in turn; those after it at random."""
        chance = random.Random(seed * 31 + number)
        return Blow.at(AIMS[seed % len(AIMS)] if number == 0 else chance.choice(AIMS), chance)

    @staticmethod
    def at(aim: str | None, chance: random.Random) -> "Blow":
        """A blow at a phase, with whatever brings it about; None: at any moment of anything."""
        act = chance.choice(("savepoint", "rescale", None))
        if aim is not None:
            act = "rescale" if aim in RESCALES else "savepoint" if aim == SAVEPOINT else None
        delay = chance.uniform(0, 0.4 if aim is None else 0.05)
        at_work = aim not in (None, RESCALE_HANDOVER) and chance.random() < 0.8
        return Blow(chance.randrange(1 << 32), chance.randint(1, 3), act, aim, chance.randint(1, 3), delay, at_work)


@dataclass
class Hit:
    """What a blow has met."""

    target: str
    processes: int
    aim: str | None
    phase: str
    after: str | None
    """The phase right behind the kill; None: no process was left to report it."""
    tasks: int
    """How many tasks of Spark's ran."""
    tries: int
    restarts: int = 0
    """How often the job was restarted before the next blow, or its end."""

    @property
    def sure(self) -> str | None:
        """The phase, if the job was in it before and after the kill."""
        return self.phase if self.after in (None, self.phase) else None


@dataclass
class Deed:
    """What a blow has begun: a savepoint or a rescaling."""

    client: Any
    directory: str
    blow: Blow
    future: Any = None
    tries: int = 0

    def begin(self) -> None:
        """Begin it, when the one before is over; one that comes too early or too late changes nothing."""
        self.tries += 1
        self.wait()
        with contextlib.suppress(PenstockError):
            if self.blow.act == "savepoint":
                self.future = self.client.trigger_savepoint(self.directory)
            elif self.blow.act == "rescale":
                current = self.client.job.graph.channels
                other = self.blow.parallelism if self.blow.parallelism != current else current % 3 + 1
                self.future = self.client.rescale(other)

    @property
    def over(self) -> bool:
        return self.future is None or self.future.done()

    def wait(self) -> None:
        wait_until(lambda: self.over or _ended(self.client), PATIENCE_SECONDS, "the end of a savepoint or a rescaling")


def _ended(client: Any) -> bool:
    return bool(client.get_job_execution_result().done())


def take_aim(client: Any, blow: Blow, directory: str, choose: Callable[[], list[int]]) -> tuple[Deed, list[int]]:
    """Returns when the job is in the phase that the blow is aimed at, or has ended; with the processes to kill."""
    deed = Deed(client, directory, blow)
    chosen: list[int] = []
    while not _ended(client) and deed.tries < MOST_TRIES:
        deed.begin()
        if blow.aim is None:
            time.sleep(blow.delay)  # any moment
        else:
            _wait_for_phase(client, deed)
        chosen = _some(client, choose)
        if (
            blow.aim is None or _in_phase(client, blow) or blow.act is None
        ):  # there may be nothing left to run a batch for
            break
    return deed, chosen


def _some(client: Any, choose: Callable[[], list[int]]) -> list[int]:
    """Processes to kill, as soon as there are any."""
    give_up = time.monotonic() + PHASE_SECONDS
    chosen = choose()
    while not chosen and not _ended(client) and time.monotonic() < give_up:
        time.sleep(0.01)
        chosen = choose()
    return chosen


def _wait_for_phase(client: Any, deed: Deed) -> None:
    blow = deed.blow
    give_up = time.monotonic() + PHASE_SECONDS
    while not _in_phase(client, blow) and not _ended(client) and time.monotonic() < give_up:
        if blow.act is not None and deed.over and not _restoring(client, blow):
            return  # it was over too soon
        time.sleep(0.001)
    if deed.tries < 3:
        time.sleep(blow.delay)  # somewhere within the phase


def _in_phase(client: Any, blow: Blow) -> bool:
    return phase_of(client) == blow.aim and (not blow.at_work or running_tasks(client) > 0)


def _restoring(client: Any, blow: Blow) -> bool:
    """Whether what comes behind a rescaling is still to come."""
    return blow.aim == RESCALE_RESTORING and client.job.is_restoring


def strike(
    client: Any, blow: Blow, directory: str, target: str, choose: Callable[[], list[int]], beside: list[Any]
) -> list[Hit]:
    """Take aim, kill, and say what was hit: the job, and those beside it. Nothing if the job had ended."""
    chance = random.Random(blow.seed)
    clients, killed = [client, *beside], 0
    for _ in range(MOST_TRIES):
        deed, victims = take_aim(client, blow, directory, choose)
        if _ended(client):
            return []
        if victims and chance.random() < 0.3:  # else all of them, so that those with work are among them
            victims = [chance.choice(victims)]
        tasks, before = running_tasks(client), [phase_of(each) for each in clients]
        killed = kill(victims)
        if killed:
            break  # else they have ended by themselves just before
    after = [phase_of(each) for each in clients]
    aims = [blow.aim] + [None] * len(beside)
    return [Hit(target, killed, *phases, tasks, deed.tries) for phases in zip(aims, before, after, strict=True)]
