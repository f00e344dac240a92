"""Captures the job of a program at its first execute(), instead of running it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from penstock.cli.programs import run_program
from penstock.common.configuration import Configuration
from penstock.common.errors import InvalidProgramError
from penstock.datastream.execution_defaults import ExecutionDefaults
from penstock.graph.job_graph import JobGraph, translate
from penstock.graph.settings import JobSettings
from penstock.graph.transformation import Transformation

__all__ = ["CapturedJob", "capture_job"]


@dataclass(frozen=True, slots=True)
class CapturedJob:
    """The job that the program wanted to execute."""

    sinks: list[Transformation]
    settings: JobSettings

    @property
    def graph(self) -> JobGraph:
        """Return the job as it would be executed."""
        return translate(self.sinks, self.settings)


class _JobReached(BaseException):
    """The program has called execute(). This is not an error, so a program's `except Exception` must not catch it."""

    def __init__(self, job: CapturedJob) -> None:
        super().__init__()
        self.job = job


class _CapturingExecutor:
    """Runs nothing, and ends the program."""

    def submit(self, sinks: list[Transformation], settings: JobSettings) -> NoReturn:
        raise _JobReached(CapturedJob(sinks, settings))


def capture_job(
    program: Path, arguments: list[str], configuration: Configuration, entry: str | None = None
) -> CapturedJob | int:
    """Run a program up to its first execute(). Return its job, or the exit code if it fails before."""
    defaults = ExecutionDefaults(configuration, executor=_CapturingExecutor())
    try:
        code = run_program(program, arguments, defaults, entry)
    except _JobReached as reached:
        return reached.job
    if code == 0:
        raise InvalidProgramError(f"{program} ended without calling execute(): there is no job to show")
    return code
