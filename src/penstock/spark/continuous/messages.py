"""The messages between the driver and the tasks, and the links that carry them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from penstock.runtime.source.source_stage import SourceWork
from penstock.spark.continuous.state_files import StateFile

__all__ = [
    "Closed",
    "Data",
    "Done",
    "DriverLinks",
    "Failed",
    "Message",
    "Start",
    "Step",
    "Stop",
    "TaskLinks",
    "Written",
]


@dataclass(frozen=True, slots=True)
class Start:
    """To a task: the job, and where its state is."""

    job: bytes
    location: str
    attempt: str
    """In the names of all files that tasks of this attempt write."""
    files: list[StateFile]


@dataclass(frozen=True, slots=True)
class Step:
    """To a task: take a step."""

    header: bytes
    """The pickled `BatchHeader` without its splits. It is the same for all tasks, so the driver pickles it once."""
    splits: bytes | None
    """The pickled splits of the header, if they have changed since the last step. There may be one for each task."""
    works: list[SourceWork]
    senders: int
    """How many tasks read from sources in this step."""


@dataclass(frozen=True, slots=True)
class Stop:
    """To a task: close the user's functions and end."""


@dataclass(frozen=True, slots=True)
class Data:
    """From task to task: all frames of one step for one stage. Every sender sends one, even if it is empty."""

    step: int
    level: int
    frames: list[bytes]


@dataclass(frozen=True, slots=True)
class Done:
    """To the driver: a task has taken a step."""

    task: int
    step: int
    reports: list[bytes]


@dataclass(frozen=True, slots=True)
class Written:
    """To the driver: the state of a task at a checkpoint is durable."""

    task: int
    checkpoint_id: int
    files: list[StateFile]
    """All that its state is in."""


@dataclass(frozen=True, slots=True)
class Failed:
    """To the driver: a task has failed."""

    task: int
    error: BaseException


@dataclass(frozen=True, slots=True)
class Closed:
    """To the driver: a task has closed the user's functions."""

    task: int


Message = Start | Step | Stop | Data | Done | Written | Failed | Closed


class DriverLinks(Protocol):
    """The tasks as the driver sees them."""

    count: int

    def send(self, task: int, message: Message) -> None:
        """To one task."""

    def receive(self, seconds: float) -> Message | None:
        """The next message of any task; None if there is none in this time. Raises an error if a task is lost."""

    def close(self) -> None:
        """End all tasks."""


class TaskLinks(Protocol):
    """The driver and the other tasks as a task sees them."""

    def send(self, task: int, message: Message) -> None:
        """To another task."""

    def tell_driver(self, message: Message) -> None:
        """To the driver; any thread may call this."""

    def receive(self) -> Message:
        """The next message of the driver or of another task; `Stop` if the driver is gone."""

    def poll(self) -> Message | None:
        """The same if there is one already."""
