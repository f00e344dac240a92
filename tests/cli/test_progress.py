"""The line of progress: what it says, and that it makes way for everything else."""

import io
import sys
import threading
from types import SimpleNamespace

from penstock.cli.progress import ProgressLine, describe
from penstock.common.completable_future import CompletableFuture
from penstock.common.watermark import MAX_WATERMARK
from penstock.runtime.exchange.frames import TaskReport
from penstock.runtime.job.job_progress import JobProgress

NOW = 1_800_000_000.0


def graph():
    return SimpleNamespace(
        vertices=[SimpleNamespace(id=0, name="source", level=0), SimpleNamespace(id=1, name="window", level=1)]
    )


def reports(records, watermark, late=0, state=0):
    metrics = {"window.numLateRecordsDropped": late} if late else {}
    return [
        TaskReport(0, 0, "source", 0, None, [], {}, records_in=records),
        TaskReport(1, 0, "window", watermark, None, [], metrics, records_in=records, state_bytes=state),
        TaskReport(1, 1, "window", watermark + 500, None, [], {}, state_bytes=state),
    ]


def progress_of(*batches, began=NOW - 10):
    progress = JobProgress(graph())
    for number, batch in enumerate(batches, start=1):
        progress.batch(batch, number, 0.5)
        _, records, seconds = progress.recent.pop()
        progress.recent.append((began + number, records, seconds))
    return progress


def test_before_the_first_checkpoint_the_job_is_starting():
    assert describe(JobProgress(graph()), NOW) == "starting ..."


def test_records_watermark_lag_lateness_state_and_checkpoint():
    progress = progress_of(
        reports(10_000, int(NOW * 1000) - 5_000, late=2, state=1024),
        reports(2_345, int(NOW * 1000) - 2_500, late=1, state=2048),
        began=NOW - 3,
    )
    assert describe(progress, NOW) == (
        "4.94k rows/s | 12.3k rows | watermark 2027-01-15 07:59:57 | lag 2.5 s | 3 late | state 4.0 KB | "
        "checkpoint 2, 1 s ago"
    )


def test_the_rate_is_that_of_the_last_seconds():
    progress = progress_of(reports(1_000_000, 0), reports(500, 0), began=NOW - 10)
    progress.recent[-1] = (NOW - 1, 500, 0.5)
    assert progress.records_per_second(NOW) == 100
    assert progress.records_per_second(NOW + 60) == 0


def test_event_time_without_watermarks_at_the_end_and_far_from_today():
    assert "no watermark" in describe(progress_of([reports(1, 0)[0]]), NOW)
    assert "watermark: end" in describe(progress_of(reports(1, MAX_WATERMARK)), NOW)
    assert "watermark 1970-01-01 00:00:05 | 0 late" in describe(progress_of(reports(1, 5_000)), NOW)
    assert "watermark 9000000000000000" in describe(progress_of(reports(1, 9_000_000_000_000_000)), NOW)


def test_restarts_are_told():
    progress = progress_of(reports(1, 0))
    progress.restarted(RuntimeError("crash"))
    assert describe(progress, NOW).endswith("| 1 restarts")


class Client:
    def __init__(self):
        self.progress = progress_of(reports(7, 0))
        self.result = CompletableFuture()

    def get_job_execution_result(self):
        return self.result


def test_what_is_printed_stands_above_the_line_and_the_line_goes_with_the_job(monkeypatch):
    terminal = io.StringIO()
    monkeypatch.setattr(sys, "stdout", terminal)
    client = Client()
    with ProgressLine(terminal, enabled=True) as line:
        line._jobs.append(client)
        line.draw(NOW)
        shown = terminal.getvalue()
        assert shown.startswith("\r\x1b[K")
        assert "7 rows" in shown
        sys.stdout.write("a result\n")
        assert terminal.getvalue() == shown + "\r\x1b[Ka result\n"
        line.draw(NOW)
        client.result.complete(None)
        line.draw(NOW)
        assert terminal.getvalue().endswith("\r\x1b[K")
    assert sys.stdout is terminal


def test_without_a_terminal_nothing_is_written():
    terminal = io.StringIO()
    before = sys.stdout
    with ProgressLine(terminal, enabled=False) as line:
        line.follow(Client())
        assert sys.stdout is before
    assert terminal.getvalue() == ""


def test_it_follows_a_job_until_it_has_ended():
    terminal = io.StringIO()
    client = Client()
    with ProgressLine(terminal, enabled=True) as line:
        line.follow(client)
        while "7 rows" not in terminal.getvalue():
            threading.Event().wait(0.01)
    assert terminal.getvalue().endswith("\r\x1b[K")


def test_from_the_beginning_there_is_something_to_see():
    terminal, client = io.StringIO(), Client()
    client.progress = JobProgress(graph())
    with ProgressLine(terminal, enabled=True) as line:
        line.submitting("averages")
        while "averages: starting Spark" not in terminal.getvalue():
            threading.Event().wait(0.01)
        line.follow(client)
        while "averages: starting Python workers" not in terminal.getvalue():
            threading.Event().wait(0.01)
        line.submitting("more")
        while "more: starting the job" not in terminal.getvalue():
            threading.Event().wait(0.01)
    assert terminal.getvalue().endswith("\r\x1b[K")


def test_in_a_narrow_terminal_the_seconds_that_go_by_are_seen(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    terminal = io.StringIO()
    line = ProgressLine(terminal, enabled=False)
    line._starting = "average per sensor and second: starting Spark, some seconds the first time", NOW - 12
    line.draw(NOW)
    text = terminal.getvalue().removeprefix("\r\x1b[K")
    assert text.endswith(" ... 12 s")
    assert len(text) < 80


def test_a_line_that_has_not_changed_is_not_drawn_again():
    terminal = io.StringIO()
    line = ProgressLine(terminal, enabled=False)
    line._starting = "averages: starting Spark", NOW
    for moment in (0, 0.25, 1, 1.25):
        line.draw(NOW + moment)
    assert terminal.getvalue().split("\r\x1b[K") == [
        "",
        "averages: starting Spark ... 0 s",
        "averages: starting Spark ... 1 s",
    ]
    line.erase()
    line.draw(NOW + 1)
    assert terminal.getvalue().endswith("\r\x1b[K\r\x1b[Kaverages: starting Spark ... 1 s")
