"""Programs run as processes of their own, and everything they start."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[2] / "src"


def start(program, *arguments, **options):
    """A Python program of ours, in a session of its own as a shell would start it."""
    environment = {**os.environ, "PYTHONPATH": str(SOURCES), "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, str(Path(__file__).parent / program), *map(str, arguments)]
    return subprocess.Popen(command, env=environment, start_new_session=True, text=True, **options)


def descendants(pid):
    """Everything a process has started, directly or not: {(pid, start time): command}."""
    parents, names = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                text = (entry / "stat").read_text(encoding="utf-8", errors="replace")
                fields = text.rpartition(")")[2].split()
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                parents[int(entry.name)] = int(fields[1])
                names[int(entry.name)] = (fields[19], command)
    found, waiting = {}, [pid]
    while waiting:
        parent = waiting.pop()
        for child in [child for child, its in parents.items() if its == parent]:
            found[child, names[child][0]] = names[child][1]
            waiting.append(child)
    return found


def alive(processes):
    """Those of the processes that still run; a number that was given to another process does not count."""
    running = {}
    for (pid, started), command in processes.items():
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            if fields[19] == started and fields[0] != "Z":
                running[pid, started] = command
    return running


def kill(pids, number=signal.SIGKILL):
    """Send a signal to processes; one that has ended in the meantime is passed over. Returns how many were hit."""
    hit = 0
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
            hit += 1
    return hit


def wait_until(condition, seconds, what):
    """Wait for something that another process does."""
    waited, last = 0.0, time.monotonic()
    while not condition():
        assert waited < seconds, f"{what} did not happen within {seconds} s"
        time.sleep(0.02)
        now = time.monotonic()
        waited += min(now - last, 1)  # if we were suspended, so was what we wait for
        last = now
