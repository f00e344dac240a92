"""How an embedded Spark's JVM is started: quickly where that does the same, else in Spark's own way."""

from __future__ import annotations

import os
from pathlib import Path

import pyspark
import pytest

from penstock.spark import class_archive, launch
from penstock.spark.java import find_java

LOCAL = {"spark.master": "local[2]", "spark.driver.memory": "300m", "spark.app.name": "test"}


@pytest.fixture(autouse=True)
def plain(monkeypatch, tmp_path):
    """No Spark configuration of the machine's, and an empty cache."""
    for name in ("SPARK_HOME", "SPARK_CONF_DIR", "PYSPARK_SUBMIT_ARGS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PENSTOCK_CACHE_DIR", str(tmp_path / "cache"))
    if find_java() is not None:
        monkeypatch.setenv("JAVA_HOME", str(find_java()))


needs_java = pytest.mark.skipif(find_java() is None, reason="no Java on this machine")


def spark_submit(command: launch.LaunchCommand) -> bool:
    return command.arguments[0].endswith("spark-submit")


@needs_java
def test_a_local_spark_is_started_without_spark_submit():
    command = launch.launch_command(LOCAL)
    assert not spark_submit(command)
    assert command.arguments[-1] == "org.apache.spark.api.python.PythonGatewayServer"
    assert {"-Xmx300m", "-Dspark.master=local[2]", "-Dspark.app.name=test"} <= set(command.arguments)
    assert any(argument.startswith("--add-opens=") for argument in command.arguments)


@needs_java
def test_sparks_launcher_is_asked_once(monkeypatch):
    first = launch.launch_command(LOCAL | {"spark.driver.extraJavaOptions": "-Djava.io.tmpdir=/tmp/one -Dmine=1"})
    monkeypatch.setattr(launch.subprocess, "run", None)
    again = launch.launch_command(LOCAL | {"spark.driver.extraJavaOptions": "-Djava.io.tmpdir=/tmp/two -Dmine=1"})
    assert "-Djava.io.tmpdir=/tmp/one" in first.arguments
    assert again.arguments == [word.replace("/tmp/one", "/tmp/two") for word in first.arguments]


@needs_java
@pytest.mark.parametrize(
    ("change", "variable"),
    [({"spark.driver.memory": "400m"}, None), ({}, "SPARK_PREPEND_CLASSES"), ({}, "HADOOP_CONF_DIR")],
)
def test_sparks_launcher_is_asked_again_when_its_answer_may_differ(monkeypatch, change, variable):
    launch.launch_command(LOCAL)
    if variable is not None:
        monkeypatch.setenv(variable, "/somewhere")
    asked = []
    run = launch.subprocess.run
    monkeypatch.setattr(launch.subprocess, "run", lambda *args, **options: asked.append(1) or run(*args, **options))
    launch.launch_command(LOCAL | change)
    assert asked


@needs_java
def test_a_damaged_answer_in_the_cache_is_asked_for_again(tmp_path):
    command = launch.launch_command(LOCAL)
    (kept,) = (tmp_path / "cache").glob("launch-*")
    kept.write_text("[")
    assert launch.launch_command(LOCAL).arguments == command.arguments


@needs_java
def test_workers_do_not_import_pyspark_from_a_zip_file(monkeypatch):
    monkeypatch.setenv("SPARK_HOME", str(Path(pyspark.__file__).parent))
    assert "SPARK_HOME" not in launch.launch_command(LOCAL).environment


@needs_java
def test_workers_find_a_pyspark_outside_of_site_packages(monkeypatch, tmp_path):
    monkeypatch.setattr(launch.pyspark, "__file__", str(tmp_path / "spark" / "python" / "pyspark" / "__init__.py"))
    monkeypatch.setenv("PYTHONPATH", "mine")
    path = launch.launch_command(LOCAL).environment["PYTHONPATH"]
    assert path.split(os.pathsep) == [str(tmp_path / "spark" / "python"), "mine"]


@pytest.mark.parametrize(
    "conf",
    [
        {"spark.master": "spark://localhost:7077"},
        {"spark.master": "local-cluster[2,1,1024]"},
        {"spark.master": "yarn"},
        LOCAL | {"spark.jars.packages": "org.example:thing:1.0"},
        LOCAL | {"spark.submit.pyFiles": "more.py"},
    ],
)
def test_what_only_spark_submit_does_is_left_to_it(conf):
    command = launch.launch_command(conf)
    assert spark_submit(command)
    for key, value in conf.items():
        assert f"{key}={value}" in command.arguments


def test_a_spark_configuration_of_the_users_own_is_honoured(monkeypatch, tmp_path):
    (tmp_path / "spark-defaults.conf").write_text("spark.ui.enabled true\n")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    assert spark_submit(launch.launch_command(LOCAL))


def test_a_java_that_cannot_be_asked_is_left_to_spark(monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    assert spark_submit(launch.launch_command(LOCAL))


def test_the_archive_is_used_if_it_is_there():
    assert class_archive.java_options() == []
    archive = class_archive.archive_path()
    archive.parent.mkdir(parents=True)
    archive.write_bytes(b"")
    assert f"-XX:SharedArchiveFile={archive}" in class_archive.java_options()


@pytest.fixture
def without_java(monkeypatch):
    """Nothing is started: it need not be there."""
    monkeypatch.setattr(class_archive, "ensure_java_home", lambda: None)


@pytest.mark.usefixtures("without_java")
def test_an_archive_is_there_whole_or_not_at_all():
    def run():
        assert class_archive.is_making()
        (option,) = class_archive.java_options()
        Path(option.partition("=")[2]).write_bytes(b"classes")
        assert not class_archive.archive_path().exists()

    path = class_archive.make_archive(run)
    assert path.read_bytes() == b"classes"
    assert not class_archive.is_making()
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.usefixtures("without_java")
def test_a_failed_attempt_leaves_no_archive():
    with pytest.raises(ZeroDivisionError):
        class_archive.make_archive(lambda: 1 // 0)
    assert list(class_archive.archive_path().parent.iterdir()) == []
