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
    """Part of the names of all files that tasks of this attempt write."""
    files: list[StateFile]


@dataclass(frozen=True, slots=True)
class Step:
    """To a task: run a step."""

    header: bytes
    """The pickled `BatchHeader` without its splits. All tasks receive the same, so the driver pickles it only once."""
    splits: bytes | None
    """The pickled splits of the header, if they have changed since the last step. There may be many, one per task."""
    works: list[SourceWork]
    senders: int
    """The number of tasks that read from sources in this step."""


@dataclass(frozen=True, slots=True)
class Stop:
    """To a task: close the user's functions and end."""


@dataclass(frozen=True, slots=True)
class Data:
    """From task to task: all frames of one step for one stage. Every sender sends this message, even without frames."""

    step: int
    level: int
    frames: list[bytes]


@dataclass(frozen=True, slots=True)
class Done:
    """To the driver: a task has run a step."""

    task: int
    step: int
    reports: list[bytes]


@dataclass(frozen=True, slots=True)
class Written:
    """To the driver: the state of a task at a checkpoint is durable."""

    task: int
    checkpoint_id: int
    files: list[StateFile]
    """All files that contain its state."""


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
    """The driver's links to its tasks."""

    count: int

    def send(self, task: int, message: Message) -> None:
        """Send a message to one task."""

    def receive(self, seconds: float) -> Message | None:
        """Return the next message of any task, or None after this time. Raise an error if a task is lost."""

    def close(self) -> None:
        """End all tasks."""


class TaskLinks(Protocol):
    """A task's links to the driver and to the other tasks."""

    def send(self, task: int, message: Message) -> None:
        """Send a message to another task."""

    def tell_driver(self, message: Message) -> None:
        """Send a message to the driver. Any thread may call this."""

    def receive(self) -> Message:
        """Return the next message of the driver or of another task, or `Stop` if the driver has ended."""

    def poll(self) -> Message | None:
        """Return the next message if there is one, without waiting."""
