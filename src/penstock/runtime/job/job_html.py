"""A running job in a notebook: a table that is updated until the job ends."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime
from html import escape
from typing import Any, Protocol

from penstock.common.completable_future import CompletableFuture
from penstock.common.job_execution_result import JobExecutionResult
from penstock.common.job_id import JobID
from penstock.common.job_status import JobStatus
from penstock.common.watermark import MAX_WATERMARK, MIN_WATERMARK
from penstock.runtime.job.job_progress import JobProgress

__all__ = ["ShownJob", "job_html", "show_live"]

_COLOURS = {"RUNNING": "#1a7f37", "FINISHED": "#57606a", "FAILED": "#cf222e", "CANCELED": "#9a6700"}


class ShownJob(Protocol):
    """The part of a job client that the table needs."""

    @property
    def progress(self) -> JobProgress:
        """The job's progress."""

    @property
    def job_name(self) -> str:
        """The job's name."""

    def get_job_id(self) -> JobID:
        """The job's id."""

    def get_job_status(self) -> CompletableFuture[JobStatus]:
        """Return the status of the job."""

    def get_job_execution_result(self) -> CompletableFuture[JobExecutionResult]:
        """Return the result when the job has ended."""


def job_html(client: ShownJob) -> str:
    """Return a table of the job's progress."""
    status = client.get_job_status().result().name
    progress = client.progress
    rows = {
        "status": f'<b style="color: {_COLOURS.get(status, "inherit")}">{escape(status)}</b>',
        "records read": f"{progress.source_records:,}",
        "records per second": f"{progress.records_per_second(time.time()):,.0f}",
        "event time": _event_time(progress.watermark),
        "late records": f"{progress.late_records:,}",
        "state": f"{progress.state_bytes:,} bytes",
        "checkpoint": "none yet" if progress.checkpointed_at is None else str(progress.checkpoint_id),
    }
    if status in ("FINISHED", "FAILED", "CANCELED"):
        del rows["records per second"]
    if progress.restarts:
        rows["restarts"] = str(progress.restarts)
    cells = "".join(
        f'<tr><th style="text-align: left">{name}</th><td>{value}</td></tr>' for name, value in rows.items()
    )
    caption = f"<caption>{escape(client.job_name)} <small>{escape(str(client.get_job_id()))}</small></caption>"
    return f'<table class="penstock-job">{caption}{cells}</table>'


def _event_time(watermark: int) -> str:
    if watermark <= MIN_WATERMARK:
        return "no watermark yet"
    if watermark >= MAX_WATERMARK:
        return "at its end"
    try:
        return f"{datetime.fromtimestamp(watermark / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (ValueError, OverflowError, OSError):
        return str(watermark)


def show_live(client: ShownJob, interval: float = 0.5) -> None:
    """Display the table in a notebook, and update it until the job has ended."""
    from IPython.display import HTML, display

    shown: Any = display(HTML(job_html(client)), display_id=True)
    if shown is None:
        return
    over = threading.Event()
    client.get_job_execution_result().add_done_callback(lambda _: over.set())

    def follow() -> None:
        while not over.wait(interval):
            shown.update(HTML(job_html(client)))
        shown.update(HTML(job_html(client)))

    threading.Thread(target=follow, name="penstock-notebook", daemon=True).start()
