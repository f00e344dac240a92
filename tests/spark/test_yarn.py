"""Programs on a real YARN: submitted, killed, resumed."""

import os
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from processes import SOURCES, descendants, kill, wait_until
from two_phase_job import KEYS, committed
from yarn_cluster import SPARK, yarn_cluster

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.server, pytest.mark.timeout(900)]

RECORDS = 4_200
SETTINGS = {
    "spark.yarn.jars": f"local:{SPARK}/jars/*",
    "spark.driver.memory": "512m",
    "spark.executor.memory": "512m",
    "spark.executor.instances": "1",
    "spark.executor.cores": "2",
    "spark.yarn.submit.file.replication": "1",
}


def read(url):
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:
            return answer.read()
    except urllib.error.URLError:
        return b""


def test_o146_an_application_resumes_after_its_master_was_killed(tmp_path):
    output, checkpoint = tmp_path / "output", tmp_path / "checkpoint"
    output.mkdir()
    settings = {
        **SETTINGS,
        "execution.checkpointing.dir": checkpoint.as_uri(),
        "spark.yarn.stagingDir": tmp_path.as_uri(),
        "penstock.lease.timeout": "2",
    }
    command = [sys.executable, "-m", "penstock.cli", "run-application", "-t", "yarn"]
    command += [part for key, value in settings.items() for part in ("-D", f"{key}={value}")]
    command += [str(Path(__file__).with_name("two_phase_job.py"))]
    command += [str(checkpoint), str(output), str(RECORDS), "yarn"]

    def masters():
        """The JVMs of application masters."""
        return {
            pid: text
            for (pid, _), text in descendants(yarn.process).items()
            if "/bin/java" in text.partition(" ")[0] and "deploy.yarn.ApplicationMaster" in text
        }

    with yarn_cluster() as yarn, (tmp_path / "log").open("wb") as log:
        environment = {**os.environ, "PYTHONPATH": str(SOURCES), "HADOOP_CONF_DIR": str(yarn.configuration)}
        submitting = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        try:
            wait_until(lambda: len(list(output.glob("*.txt"))) >= 3 or submitting.poll(), 300, "a commit")
            assert submitting.poll() is None, (tmp_path / "log").read_text() + yarn.logs()
            (application,) = yarn.applications()
            page = application["trackingUrl"].rstrip("/")
            # The application master tells YARN the address with one of its next heartbeats.
            wait_until(lambda: b'"RUNNING"' in read(f"{page}/jobs/overview"), 60, f"an answer through {page}")
            first = masters()
            assert kill(first) == 1
            wait_until(lambda: masters().keys() - first.keys(), 300, "the second attempt")
            assert submitting.wait(600) == 0, (tmp_path / "log").read_text() + yarn.logs()
            (application,) = yarn.applications()
        finally:
            submitting.kill()
            submitting.wait()
    assert application["finalStatus"] == "SUCCEEDED"
    found = committed(output)
    assert len(found) == RECORDS
    assert found == sorted((key, n) for key in range(KEYS) for n in range(1, RECORDS // KEYS + 1))
