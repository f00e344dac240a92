"""Pass errors from a worker through the JVM to the driver, and convert them back into Python exceptions."""

from __future__ import annotations

import base64
import pickle
import re
from typing import NoReturn

from penstock.common.errors import CheckpointError, JobExecutionError, PenstockError
from penstock.runtime.operators.black_box import notes_in
from penstock.runtime.operators.user_errors import user_traceback
from penstock.spark.start_failures import WorkerStartError
from penstock.spark.storage_failures import full_disk_in

_MARK = "PENSTOCK-ERROR:"
# How Spark and Hadoop report that a file of a checkpoint is damaged.
_DAMAGE = re.compile(
    r"ChecksumException|Checksum error|CHECKSUM_VERIFICATION_FAILED|Incomplete log file|Log file was malformed|"
    r"CANNOT_LOAD_STATE_STORE|FAILED_READ_STREAMING_STATE|RocksDBException: Corruption|Batch \d+ doesn't exist|"
    r"(?:delta|snapshot|changelog) file .* does not exist|"
    r"File \S*(?:/state/\d+/|_stateSchema/|/_metadata/|/default/\d+_)\S* does not exist|"
    r'Unsupported data type \{"type"|Failed to convert the JSON string'
)
_FILE = re.compile(r"[^\s'\"]*/(?:state|offsets|commits|sources)/[^\s'\",;)]+")
# After these errors, a file may be unreadable because its reader was ended.
_KILLED = re.compile(r"Python worker exited unexpectedly|ExecutorLostFailure|InterruptedException|ClosedByInterrupt")
# In the planning process, in a task, or if the machine has no room for another process.
_NOT_STARTED = re.compile(
    r"Python worker failed to connect back|waiting for the Python worker to connect back|"
    r"Python daemon failed to launch worker"
)
_DIED = re.compile(r"Python worker exited unexpectedly")
_FRAME = re.compile(r'^\s*(File "[^"]*", line \d+ in \S+)', re.MULTILINE)
_OTHERS = re.compile(r'/(?:penstock|pyspark)/|/threading\.py"|"<frozen')
_MOST_FRAMES = 10
_PATTERN = re.compile(_MARK + r"([A-Za-z0-9+/=]+):")


class TaskFailureError(Exception):
    """Carries an encoded error. Its text survives the JVM."""


def portable_error(error: BaseException) -> PenstockError:
    """Return an error of a task in a form that another process can read."""
    if not isinstance(error, PenstockError):
        return JobExecutionError(f"a task failed: {type(error).__name__}: {error}\n{user_traceback(error)}")
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return JobExecutionError(str(error))
    return error


def raise_encoded(error: BaseException) -> NoReturn:
    """Leave a worker with an error that the driver can decode."""
    error = portable_error(error)
    data = pickle.dumps(error)
    # The readable part comes first: in the user's own query (`to_dataframe`), nothing decodes the rest.
    raise TaskFailureError(f"{error}\n{_MARK}{base64.b64encode(data).decode()}:") from None


def decode_failure(text: str) -> PenstockError:
    """Decode the error in the text of a Spark exception."""
    found = _PATTERN.search(text)
    if found:
        error = pickle.loads(base64.b64decode(found.group(1)))
        consequence = type(error) is JobExecutionError and full_disk_in(text)  # for instance a broken pipe
        if isinstance(error, PenstockError) and not consequence:
            return error
    if _NOT_STARTED.search(text):
        return WorkerStartError(f"Spark could not start a Python process in time:\n{_useful_lines(text)}")
    damage = _DAMAGE.search(text)
    if damage and not _KILLED.search(text):
        return CheckpointError(
            f"the checkpoint is damaged: Spark cannot read a file that it wrote there ({_line_of(text, damage)}). "
            "Restore the file, or start from a savepoint with an empty checkpoint directory"
        )
    if _DIED.search(text) and not full_disk_in(text):
        return JobExecutionError(_describe_death(text))
    return JobExecutionError(_useful_lines(text))


def _describe_death(text: str) -> str:
    """Describe the death of a Python process: the operators it was running, and the stack of a crash, if any."""
    running = notes_in(text)
    operators = "while it was running " + " or ".join(running) if running else "unexpectedly"
    fatal = re.search(r"Fatal Python error: (.*)", text)
    why = (
        f"Python crashed ({fatal.group(1)})"
        if fatal
        else "It was killed, perhaps because the machine ran out of memory, or a function called os._exit()"
    )
    stack = text.partition("Current thread")[2].partition("\n\n")[0]  # stacks of other threads come before and after
    frames = [line for line in _FRAME.findall(stack) if not _OTHERS.search(line)]
    where = "\n".join(["", "most recent call first:", *frames[:_MOST_FRAMES]]) if frames else ""
    return f"a Python process died {operators}. {why}{where}"


def _line_of(text: str, found: re.Match[str]) -> str:
    line = text[text.rfind("\n", 0, found.start()) + 1 :].partition("\n")[0].strip()
    file = _FILE.search(text)
    where = "" if file is None or file.group() in line else f", {file.group()}"
    return line.removeprefix("Caused by: ")[:400] + where


def _useful_lines(text: str) -> str:
    """Return the useful part of a JVM error: messages and Python frames, without Java frames."""
    text = text.partition("=== Streaming Query ===")[0]  # offsets and plans follow
    lines = [line for line in text.splitlines() if line.strip() and not re.match(r"\s*(at |\.\.\. \d+ more)", line)]
    return "\n".join(lines[:60]) or "the Spark query failed"
