"""Tasks as threads of the driver's process, for tests. Messages are passed without encoding."""

from __future__ import annotations

import queue
import threading

from penstock.spark.continuous.messages import Message, Stop
from penstock.spark.continuous.task import ContinuousTask

__all__ = ["ThreadLinks"]


class ThreadLinks:
    """The driver's links to tasks in this process."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._driver: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self._tasks: list[queue.SimpleQueue[Message]] = [queue.SimpleQueue() for _ in range(count)]
        self._threads = [
            threading.Thread(target=self._run, args=(task,), name=f"task {task}", daemon=True) for task in range(count)
        ]
        for thread in self._threads:
            thread.start()

    def _run(self, task: int) -> None:
        try:
            ContinuousTask(task, _OwnLinks(task, self._driver, self._tasks)).run()
        except BaseException:
            return

    def send(self, task: int, message: Message) -> None:
        """Put the message into the task's queue."""
        self._tasks[task].put(message)

    def receive(self, seconds: float) -> Message | None:
        """Return a message from the driver's queue."""
        try:
            return self._driver.get(timeout=seconds) if seconds else self._driver.get_nowait()
        except queue.Empty:
            return None

    def close(self) -> None:
        """End all threads."""
        for task in self._tasks:
            task.put(Stop())
        for thread in self._threads:
            thread.join(1)


class _OwnLinks:
    def __init__(self, task: int, driver: queue.SimpleQueue[Message], tasks: list[queue.SimpleQueue[Message]]) -> None:
        self._task = task
        self._driver = driver
        self._tasks = tasks

    def send(self, task: int, message: Message) -> None:
        self._tasks[task].put(message)

    def tell_driver(self, message: Message) -> None:
        self._driver.put(message)

    def receive(self) -> Message:
        return self._tasks[self._task].get()

    def poll(self) -> Message | None:
        try:
            return self._tasks[self._task].get_nowait()
        except queue.Empty:
            return None
