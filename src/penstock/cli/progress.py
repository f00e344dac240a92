"""One line at the bottom of a terminal that shows the progress of a running job."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self, TextIO

from penstock.common.job_client import JobClient
from penstock.common.watermark import MAX_WATERMARK, MIN_WATERMARK
from penstock.runtime.job.job_progress import JobProgress

__all__ = ["ProgressLine", "describe"]

_REDRAW_SECONDS = 0.25
_ERASE = "\r\x1b[K"
# A larger lag means that event time is unrelated to the wall clock.
_SENSIBLE_LAG_MS = 1000 * 24 * 3600 * 1000


class ProgressLine:
    """Redraws the line while jobs run, and removes it whenever other text is written."""

    def __init__(self, terminal: TextIO, *, enabled: bool) -> None:
        self._terminal = terminal
        self._enabled = enabled
        self.lock = threading.RLock()
        self._shown = ""
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._jobs: list[Any] = []
        self._name = "job"
        self._since = 0.0  # when the last job was submitted
        self._starting: tuple[str, float] | None = None  # what the command is waiting for, and since when

    def submitting(self, job_name: str) -> None:
        """Show that a job with this name is about to start. The first job has to wait for Spark."""
        what = "the job" if self._jobs else "Spark, some seconds the first time"
        self._name, self._since = job_name, time.time()
        self.wait_for(f"{job_name}: starting {what}")

    def wait_for(self, label: str) -> None:
        """Show what the command is waiting for, and for how long."""
        if self._enabled:
            self._starting = label, time.time()
            self._start()

    def follow(self, client: JobClient) -> None:
        """Show this job. Called when it is submitted."""
        self._starting = None
        if not self._enabled or getattr(client, "progress", None) is None:
            return
        self._jobs.append(client)
        self._start()

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._redraw, name="penstock-progress", daemon=True)
            self._thread.start()

    def __enter__(self) -> Self:
        self._streams = sys.stdout, sys.stderr
        if self._enabled or sys.stderr.isatty():  # even if this line is off: Spark must not show its own
            sys.stdout, sys.stderr = _Above(sys.stdout, self), _Above(sys.stderr, self)
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
        self.erase()
        sys.stdout, sys.stderr = self._streams

    def erase(self) -> None:
        """Remove the line until it is drawn again."""
        with self.lock:
            if self._shown:
                self._shown = ""
                self._terminal.write(_ERASE)
                self._terminal.flush()

    def draw(self, now: float) -> None:
        """Show what the command is waiting for, or otherwise the last running job."""
        width = shutil.get_terminal_size().columns - 1
        running = [job for job in self._jobs if not job.get_job_execution_result().done()]
        starting = self._starting
        if starting is not None:
            text = _waiting(starting[0], now - starting[1], width)
        elif running and running[-1].progress.checkpointed_at is None:
            text = _waiting(f"{self._name}: starting Python workers for the first batch", now - self._since, width)
        elif running:
            text = describe(running[-1].progress, now)[:width]
        else:
            self.erase()
            return
        with self.lock:
            if text != self._shown:
                self._shown = text
                self._terminal.write(_ERASE + text)
                self._terminal.flush()

    def _redraw(self) -> None:
        self.draw(time.time())
        while not self._ended.wait(_REDRAW_SECONDS):
            self.draw(time.time())


class _Above:
    """A stream whose text appears above the line."""

    shows_progress = True  # so that other code does not print its own "please wait"

    def __init__(self, stream: TextIO, line: ProgressLine) -> None:
        self._stream = stream
        self._line = line

    def write(self, text: str) -> int:
        with self._line.lock:
            self._line.erase()
            return self._stream.write(text)

    def flush(self) -> None:
        self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _waiting(label: str, seconds: float, width: int) -> str:
    """Return the line to show while waiting. In a narrow terminal, the seconds stay visible.

    >>> _waiting("my job: starting Spark", 7.2, 80), _waiting("my job: starting Spark", 7.2, 20)
    ('my job: starting Spark ... 7 s', 'my job: star ... 7 s')
    """
    counted = f" ... {max(seconds, 0):.0f} s"
    return label[: max(width - len(counted), 0)] + counted


def describe(progress: JobProgress, now: float) -> str:
    """Return the line: records, event time, lateness, state, checkpoint, restarts."""
    checkpointed_at = progress.checkpointed_at
    if checkpointed_at is None:
        return "starting ..."
    parts = [
        f"{_count(progress.records_per_second(now))} rows/s",
        f"{_count(progress.source_records)} rows",
        *_event_time(progress.watermark, now),
        f"{_count(progress.late_records)} late",
        f"state {_bytes(progress.state_bytes)}",
        f"checkpoint {progress.checkpoint_id}, {max(now - checkpointed_at, 0):.0f} s ago",
    ]
    if progress.restarts:
        parts.append(f"{progress.restarts} restarts")
    return " | ".join(parts)


def _event_time(watermark: int, now: float) -> list[str]:
    if watermark <= MIN_WATERMARK:
        return ["no watermark"]
    if watermark >= MAX_WATERMARK:
        return ["watermark: end"]
    lag = now * 1000 - watermark
    try:
        text = f"watermark {datetime.fromtimestamp(watermark / 1000, UTC):%Y-%m-%d %H:%M:%S}"
    except (ValueError, OverflowError, OSError):
        return [f"watermark {watermark}"]
    return [text, f"lag {lag / 1000:.1f} s"] if 0 <= lag < _SENSIBLE_LAG_MS else [text]


def _count(number: float) -> str:
    """Format a number with about three digits.

    >>> [_count(n) for n in (7, 999, 12_345, 1_234_567)]
    ['7', '999', '12.3k', '1.23M']
    """
    for limit, divisor, unit in ((999.5, 1, ""), (999.5e3, 1e3, "k"), (999.5e6, 1e6, "M")):
        if number < limit:
            return f"{number / divisor:.3g}{unit}"
    return f"{number / 1e9:.3g}G"


def _bytes(number: int) -> str:
    """Format a size in bytes.

    >>> [_bytes(n) for n in (0, 2_048, 5 * 1024**2)]
    ['0 B', '2.0 KB', '5.0 MB']
    """
    value = float(number)
    for unit in ("B", "KB", "MB", "GB"):
        if value < 1024 or unit == "GB":
            return f"{value:.0f} B" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    raise AssertionError("unreachable")
