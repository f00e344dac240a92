"""Spark's command that submits a program to YARN, with the driver in the application master.

YARN restarts the application master if it dies. The program then runs from its beginning, possibly on another machine,
and its job resumes from the checkpoint directory.
"""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkContext

from penstock.common.errors import InvalidProgramError
from penstock.spark import jvm_classes
from penstock.spark.java import ensure_java_home
from penstock.spark.launch import spark_home
from penstock.spark.package import write_package

__all__ = ["YarnProgram", "publish_address", "submit_to_yarn"]

_PACKAGE = "penstock-package"
_CHECKPOINT_DIRECTORY = "execution.checkpointing.dir"
_ATTEMPTS = "yarn.application-attempts"
_FLINKS_KEYS = {
    "yarn.application.name": "spark.app.name",
    "yarn.application.queue": "spark.yarn.queue",
    "yarn.application.priority": "spark.yarn.priority",
    "yarn.application.node-label": "spark.yarn.am.nodeLabelExpression",
    "yarn.tags": "spark.yarn.tags",
    "yarn.application-attempt-failures-validity-interval": "spark.yarn.am.attemptFailuresValidityInterval",
    "yarn.staging-directory": "spark.yarn.stagingDir",
}
_SUBMITTED = re.compile(r"Submitted application (application_\d+_\d+)")
_STATUS = re.compile(r"final status: (\w+)|\(state: (RUNNING)\)|tracking URL: (\S+)")
_LAST_LINES = 40


@dataclass(frozen=True, slots=True)
class YarnProgram:
    """A program to run in an application master."""

    driver: Path
    """The script that YARN starts. It receives `arguments`."""
    program: Path
    arguments: list[str]
    settings: Mapping[str, str]
    python_files: str | None = None


def submit_to_yarn(program: YarnProgram, scratch: Path, *, wait: bool, tell: Callable[[str], None]) -> int:
    """Submit the program. Return 0 once it runs or, with `wait`, when it has ended successfully.

    :param scratch: an empty directory for the files to send
    :param tell: receives the application's id, its address and status changes
    """
    ensure_java_home()
    output: deque[str] = deque(maxlen=_LAST_LINES)
    told: set[str] = set()
    with subprocess.Popen(  # noqa: S603 - Spark's own program
        submit_command(program, scratch, wait=wait),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            output.append(line.rstrip())
            for news in _status_messages(line):
                if news not in told:
                    told.add(news)
                    tell(news)
    if process.returncode != 0:
        tell("YARN did not run the program to its end. Spark's output:\n" + "\n".join(output))
    return process.returncode


def _status_messages(line: str) -> list[str]:
    submitted = _SUBMITTED.search(line)
    if submitted is not None:
        return [f"Submitted to YARN as {submitted[1]}"]
    found = _STATUS.search(line)
    if found is None or found[0].endswith(("UNDEFINED", "N/A")):
        return []
    status, running, address = found.groups()
    return [f"Ended: {status}" if status else "Running" if running else f"YARN's page: {address}"]


def submit_command(program: YarnProgram, scratch: Path, *, wait: bool) -> list[str]:
    """Return the command line of spark-submit. Settings are passed in files, because others may see command lines."""
    conf = scratch / "spark.conf"
    conf.write_text("".join(f"{key} {value}\n" for key, value in _spark_settings(program, wait=wait).items()))
    conf.chmod(0o600)
    settings = scratch / "config.yaml"
    settings.write_text("".join(f"{key}: {_quoted(key, value)}\n" for key, value in program.settings.items()))
    settings.chmod(0o600)
    package = write_package(scratch)
    command = [str(Path(spark_home(), "bin", "spark-submit")), "--master", "yarn", "--deploy-mode", "cluster"]
    command += ["--properties-file", str(conf), "--files", f"{program.program.resolve()},{settings}"]
    command += ["--archives", f"{package}#{_PACKAGE}"]
    if program.python_files:
        command += ["--py-files", program.python_files]
    return [*command, str(program.driver), *program.arguments]


def _spark_settings(program: YarnProgram, *, wait: bool) -> dict[str, str]:
    own = program.settings
    found = {
        "spark.app.name": program.program.name,
        "spark.yarn.submit.waitAppCompletion": str(wait).lower(),
        # A program without a checkpoint directory would start from scratch, and repeat all its output.
        "spark.yarn.maxAppAttempts": own.get(_ATTEMPTS, "2" if _CHECKPOINT_DIRECTORY in own else "1"),
        "spark.pyspark.python": sys.executable,
        "spark.yarn.appMasterEnv.PYTHONPATH": _PACKAGE,
        "spark.yarn.appMasterEnv.PENSTOCK_CONF_DIR": ".",
    }
    try:
        jar = jvm_classes.compiled_jar()
    except Exception:  # everything works without them, but more slowly
        jar = None
    if jar is not None:
        found |= {"spark.driver.extraClassPath": jar.name, "spark.jars": jar.as_uri()}
    found |= {spark: own[flink] for flink, spark in _FLINKS_KEYS.items() if flink in own}
    return found | {key: value for key, value in own.items() if key.startswith("spark.")}


def _quoted(key: str, value: str) -> str:
    if "\n" in value:
        raise InvalidProgramError(f"the setting {key} has a line break, which cannot be sent to YARN")
    quote = "'" if '"' in value else '"'
    if quote in value:
        raise InvalidProgramError(f"the setting {key} has both kinds of quotes, which cannot be sent to YARN")
    return f"{quote}{value}{quote}"


def publish_address(address: str) -> None:
    """Tell YARN the address of the application's page, from the process that the application master has started.

    Spark tells YARN the address of its own UI, once, and has no way to change it: the client that talks to YARN is a
    private field. Without it, YARN's list of applications only lacks a link.
    """
    context = SparkContext._active_spark_context
    if context is None:
        return
    with contextlib.suppress(Py4JError):
        jvm: Any = context._jvm
        lang = jvm.java.lang
        loader = lang.Thread.currentThread().getContextClassLoader()
        # Scala keeps the running master in a static field of the class of its companion object.
        kind = lang.Class.forName("org.apache.spark.deploy.yarn.ApplicationMaster$", True, loader)
        found: Any = None
        for name in ("master", "client", "amClient"):
            field = next((field for field in kind.getDeclaredFields() if field.getName().endswith(name)), None)
            if field is None:  # another version of Spark
                return
            field.setAccessible(True)
            found = field.get(found)
            if found is None:  # this process runs in a container of YARN, but is not an application master
                return
            kind = found.getClass()
        found.updateTrackingUrl(address)
