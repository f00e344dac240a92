"""``penstock replay``: runs one checkpoint of a job again in this process, for inspection or a debugger."""

from __future__ import annotations

import argparse
import pdb  # noqa: T100 - the user requests a debugger
import sys
from bdb import BdbQuit
from contextlib import chdir
from pathlib import Path

from penstock.cli.captured_job import CapturedJob, capture_job
from penstock.cli.job_records import JobRecord, JobRecords
from penstock.cli.programs import configuration
from penstock.cluster.replay import Replay, ReplayedBatch
from penstock.cluster.replay_observers import Watch
from penstock.common.errors import InvalidProgramError
from penstock.graph.job_graph import JobGraph
from penstock.testing.mini_engine import ChannelState
from penstock.testing.python_files import add_python_files, add_requirements, unpack_archives

__all__ = ["replay"]


def replay(options: argparse.Namespace) -> int:
    """Find the job and its program, read the checkpoint, and run it."""
    record = JobRecords().find(options.job)
    command = record.command
    if command is None:
        raise InvalidProgramError(f"job {record.job_id} was started without a repeatable command line")
    if not Path(command.directory).is_dir():
        raise InvalidProgramError(f"the directory in which the job was started no longer exists: {command.directory}")
    with chdir(command.directory):
        job = _job_of(record)
        if isinstance(job, int):
            return job
        add_python_files(job.settings.python_files)
        add_requirements(job.settings.python_requirements)
        archives = unpack_archives(job.settings.python_archives)
        batch, graph = _stored(job, options.checkpoint)
        debugger = pdb.Pdb() if options.pdb else None
        watch = Watch(options.operator, options.key, options.limit, debugger)
        try:
            Replay(graph, batch, watch, working_directory=archives).run()
        except Exception as error:
            if debugger is None:
                raise
            cause = _innermost(error)
            if isinstance(cause, BdbQuit):
                print("stopped in the debugger", file=sys.stderr)
            else:
                print(f"error: {error}", file=sys.stderr)
                pdb.post_mortem(cause.__traceback__)
            return 1
    return 0


def _job_of(record: JobRecord) -> CapturedJob | int:
    """Return the job as the program defines it now. It must have the name of the recorded one."""
    from penstock.cli.main import build_parser

    command = record.command
    assert command is not None
    line = ["run", *command.options, command.program, *command.arguments]
    options = build_parser().parse_args(line)
    settings = configuration(options)
    if options.master:
        settings.set_string("spark.master", options.master)
    job = capture_job(options.program, options.arguments, settings, options.entry)
    if not isinstance(job, int) and job.settings.job_name != record.name:
        raise InvalidProgramError(
            f"the first job of {command.program} is '{job.settings.job_name}', not '{record.name}': a later job of a "
            "program cannot be replayed"
        )
    return job


def _stored(job: CapturedJob, checkpoint: str) -> tuple[ReplayedBatch, JobGraph]:
    """Read the state with Spark, which is the only reader of its own state. Spark is stopped afterwards."""
    from penstock.spark.executor import stop_embedded_session
    from penstock.spark.session import build_session, running_session
    from penstock.spark.stored_batch import read_batch

    started = running_session() is None
    files = {
        key: value
        for key, value in job.settings.configuration.items()
        if key.startswith(("spark.hadoop.", "spark.jars"))
    }
    spark = running_session() or build_session("local[1]", "penstock replay", conf=files)
    try:
        number = None if checkpoint == "last" else int(checkpoint)
        found = read_batch(spark, job.sinks, job.settings, number)
    finally:
        if started:
            stop_embedded_session()
    channels = {place: ChannelState(*state) for place, state in found.channels.items()}
    batch = ReplayedBatch(found.start, found.end, channels, found.job_id, found.committed, found.restore)
    return batch, found.graph


def _innermost(error: BaseException) -> BaseException:
    """Return the user's own error: an error of a function is raised without it, so that messages stay short."""
    while (earlier := error.__cause__ or error.__context__) is not None:
        error = earlier
    return error
