"""A session is tested from outside, in a process of its own: what it prints, what it leaves, what Ctrl-C does."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from types import SimpleNamespace

import pyspark.sql.pandas.utils
import pytest

from penstock.common.errors import InvalidProgramError
from penstock.spark import jvm_classes, session
from penstock.spark.job_master import check_one_machine
from penstock.spark.session import _joined, quiet_interrupts, stop_session
from penstock.spark.session_conf import cluster_settings, driver_memory, runtime_settings

_SOURCES = str(Path(__file__).parents[2] / "src")
_PATIENCE = 250.0  # a busy machine starts a JVM slowly

pytestmark = pytest.mark.timeout(300)


def _environment(**more: str) -> dict[str, str]:
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(("PENSTOCK_", "PYSPARK_"))}
    return {**inherited, "PYTHONPATH": _SOURCES, **more}


def _program(text: str) -> list[str]:
    prelude = """
        import os, signal, sys, time
        from penstock.spark import session
        from penstock.spark.gateway import session_members
        from penstock.spark.session import build_session, session_for, stop_session
        """
    return [sys.executable, "-c", textwrap.dedent(prelude) + textwrap.dedent(text)]


def _run(text: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        _program(text), env=_environment(**environment), capture_output=True, text=True, timeout=_PATIENCE, check=False
    )


def _members(session: int) -> list[int]:
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
            if os.getsid(int(entry.name)) == session and state != "Z":
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def _wait_until(condition) -> bool:
    deadline = time.monotonic() + 120
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


@pytest.mark.spark
def test_a_program_says_what_its_own_functions_print_and_nothing_else():
    done = _run(
        """
        from penstock.spark.worker_tuning import tune_worker

        def show(rows):
            tune_worker()
            print("seen", len(list(rows)))
            print("half", end="")
            print(" a line", file=sys.stdout)
            print("oops", file=sys.stderr)
            return [1]

        spark = build_session(master="local[1]")
        assert session_for(spark, 1).sparkContext.parallelize(range(3), 1).mapPartitions(show).collect() == [1]
        stop_session(spark)
        print("done")
        """
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["seen 3", "half a line", "done"]
    assert done.stderr.splitlines() == ["oops"]


@pytest.mark.spark
def test_spark_logs_as_usual_when_debugging():
    done = _run("stop_session(build_session(master='local[1]'))", PENSTOCK_DEBUG="1")
    assert done.returncode == 0, done.stderr
    assert "log level" in done.stderr


@pytest.mark.spark
def test_stopping_leaves_no_process_and_no_file_and_a_new_session_can_follow():
    done = _run(
        """
        members = session_members

        for _ in range(2):
            spark = build_session(master="local[2]", parallelism=3, conf={"spark.penstock.test": "x"})
            assert spark.conf.get("spark.sql.shuffle.partitions") == "3"
            assert spark.conf.get("spark.penstock.test") == "x"
            assert build_session() is spark
            other = session_for(spark, 5)
            assert other.conf.get("spark.sql.shuffle.partitions") == "5"
            assert spark.conf.get("spark.sql.shuffle.partitions") == "3"
            assert spark.sparkContext.parallelize(range(4), 2).map(str).count() == 4
            running = session._embedded
            pid, directory = running.jvm.pid, running.directory
            assert len(members(pid)) > 1 and directory.is_dir()
            jvm = spark.sparkContext._jvm
            files = jvm.org.apache.hadoop.fs.FileSystem.getLocal(spark.sparkContext._jsc.hadoopConfiguration())
            path = jvm.org.apache.hadoop.fs.Path(str(directory / "made"))
            files.create(path).close()
            files.setPermission(path, jvm.org.apache.hadoop.fs.permission.FsPermission("640"))
            assert (directory / "made").stat().st_mode & 0o777 == 0o640
            stop_session(spark)
            stop_session(spark)
            assert not members(pid) and not directory.exists()
        """
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


@pytest.mark.spark
def test_ctrl_c_reaches_the_program_but_not_its_jvm():
    program = _program(
        """
        spark = build_session(master="local[1]")
        pid = session._embedded.jvm.pid
        try:
            print(pid, flush=True)  # inside: the interrupt may come at once
            while True:
                time.sleep(0.05)
        except KeyboardInterrupt:
            assert spark.range(3).count() == 3
            stop_session(spark)
            print("stopped", flush=True)
        """
    )
    running = subprocess.Popen(program, env=_environment(), stdout=subprocess.PIPE, text=True, start_new_session=True)
    with running:
        jvm = int(running.stdout.readline())
        os.killpg(running.pid, signal.SIGINT)  # what a terminal does
        output, _ = running.communicate(timeout=_PATIENCE)
    assert (running.returncode, output) == (0, "stopped\n")
    assert not _members(jvm)


@pytest.mark.spark
@pytest.mark.parametrize("end", ["exit", "kill"])
def test_a_program_that_forgets_to_stop_leaves_no_process(end):
    program = _program(
        """
        spark = build_session(master="local[1]")
        spark.sparkContext.parallelize(range(4), 1).map(str).count()
        print(session._embedded.jvm.pid, flush=True)
        if sys.stdin.readline().strip() == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        """
    )
    running = subprocess.Popen(program, env=_environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with running:
        jvm = int(running.stdout.readline())
        assert len(_members(jvm)) > 1
        running.communicate(f"{end}\n", timeout=_PATIENCE)
    assert _wait_until(lambda: not _members(jvm))


def test_options_and_class_paths_of_the_user_come_on_top_of_ours():
    assert _joined("spark.driver.extraJavaOptions", "-Da=1", "-Db=2") == "-Da=1 -Db=2"
    assert _joined("spark.driver.extraClassPath", "ours.jar", "users.jar") == f"users.jar{os.pathsep}ours.jar"
    assert _joined("spark.ui.enabled", "false", "true") == "true"
    assert _joined("spark.new", None, "x") == "x"


def test_memory_has_a_unit_and_partitions_are_set_only_if_asked_for():
    assert driver_memory()[-1] in "gm"
    assert "spark.sql.shuffle.partitions" not in runtime_settings()
    assert runtime_settings(7)["spark.sql.shuffle.partitions"] == "7"


def test_o146_a_driver_of_spark_submit_has_the_settings_of_a_cluster(monkeypatch):
    """On YARN, the directory for temporary files of a container is too long a path for a socket."""
    wanted = {}

    def config(**options):
        wanted.update(options["map"])
        return SimpleNamespace(getOrCreate=lambda: "session")

    builder = SimpleNamespace(config=config)
    monkeypatch.setattr(session, "SparkSession", SimpleNamespace(builder=builder))
    monkeypatch.setattr(session, "SparkContext", SimpleNamespace(_active_spark_context=None))
    monkeypatch.setattr(session.os, "environ", {**os.environ, "PYSPARK_GATEWAY_PORT": "1"})
    assert session.build_session(conf={"spark.ui.enabled": "true"}) == "session"
    assert cluster_settings().items() <= wanted.items()
    assert wanted["spark.python.unix.domain.socket.dir"] == "/tmp"
    assert wanted["spark.ui.enabled"] == "true"
    assert "spark.master" not in wanted


def test_without_a_compiler_spark_runs_on_its_own_file_system(monkeypatch, tmp_path):
    monkeypatch.setenv("PENSTOCK_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    assert jvm_classes.local_settings() == {}
    assert list(tmp_path.iterdir()) == []


@pytest.mark.spark
def test_the_file_system_is_compiled_once(monkeypatch, tmp_path):
    monkeypatch.setenv("PENSTOCK_CACHE_DIR", str(tmp_path / "cache"))
    jar = jvm_classes.compiled_jar()
    made = jar.stat().st_mtime_ns
    assert jvm_classes.local_settings()["spark.driver.extraClassPath"] == str(jar)
    assert jar.stat().st_mtime_ns == made
    assert [path.name for path in jar.parent.iterdir()] == [jar.name]


def test_stopping_somebody_elses_spark_does_nothing():
    stopped = []
    stranger = SimpleNamespace(sparkContext=object(), stop=lambda: stopped.append("session"))
    ours = session._embedded
    stop_session(stranger)
    assert not stopped
    assert session._embedded is ours


def test_an_interrupt_while_spark_starts_is_no_news_but_everything_else_is(caplog):
    with quiet_interrupts():
        logging.getLogger().error("KeyboardInterrupt while sending command.")
        logging.getLogger().error("something else")
    logging.getLogger().error("KeyboardInterrupt while sending command, later")
    assert [record.message for record in caplog.records] == [
        "something else",
        "KeyboardInterrupt while sending command, later",
    ]


def test_workers_of_this_machine_are_of_this_python_and_others_of_the_one_that_is_named(monkeypatch):
    monkeypatch.setenv("PYSPARK_PYTHON", "/there/python")
    session._choose_python("spark://host:7077", {})
    assert os.environ["PYSPARK_PYTHON"] == "/there/python"
    session._choose_python("spark://host:7077", {"spark.pyspark.python": "/elsewhere/python"})
    assert os.environ["PYSPARK_PYTHON"] == "/elsewhere/python"
    session._choose_python("local[*]", {})
    assert os.environ["PYSPARK_PYTHON"] == os.environ["PYSPARK_DRIVER_PYTHON"] == sys.executable
    monkeypatch.delenv("PYSPARK_PYTHON")
    session._choose_python("yarn", {})
    assert os.environ["PYSPARK_PYTHON"] == sys.executable


def test_a_job_on_several_machines_needs_a_checkpoint_directory():
    class Info:
        def __init__(self, host):
            self.host = lambda: host

    class Spark:
        """As much of a session as is looked at."""

        def __init__(self, master, *hosts):
            self.sparkContext = self
            self.master = master
            self._jsc = self
            self.sc = self.statusTracker = self.getConf = lambda: self
            self.get = {"spark.driver.host": "driver"}.get
            self.getExecutorInfos = lambda: [Info(host) for host in hosts]

    check_one_machine(Spark("local[2]", "driver"))
    check_one_machine(Spark("spark://driver:7077", "driver", "127.0.0.1"))
    with pytest.raises(InvalidProgramError, match=r"other machines \(one, two\).*execution.checkpointing.dir"):
        check_one_machine(Spark("spark://driver:7077", "driver", "two", "one"))


@pytest.mark.parametrize("wanted", ["default", "error"])
def test_pysparks_warning_about_pandas_3_is_not_shown(wanted):
    """Penstock does not use pandas. The text is pyspark's own."""
    source = Path(pyspark.sql.pandas.utils.__file__).read_text(encoding="utf-8")
    warning = "PySpark does not yet fully support pandas >= 3.0.0. "
    assert warning in source
    program = f"import warnings, penstock.spark; warnings.warn({warning!r}, FutureWarning)"
    done = subprocess.run([sys.executable, "-W", wanted, "-c", program], capture_output=True, check=True, timeout=60)
    assert done.stderr == b""
