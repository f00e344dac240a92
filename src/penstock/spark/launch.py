"""The command that starts an embedded Spark's JVM.

Spark's own way is a shell script, a small JVM that computes the command, and SparkSubmit inside the real JVM. It also
tells Python workers to import pyspark from a zip file, whose modules Python compiles again in every process. For a
local Spark, this module asks the small JVM directly, and caches its answer. The gateway starts at once, and workers
import pyspark from the location used by this process. With a custom Spark configuration, jars to fetch, or a cluster,
Spark's own way is used.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import site
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyspark
from pyspark.find_spark_home import _find_spark_home

from penstock.spark import class_archive, jvm_classes

__all__ = ["LaunchCommand", "launch_command", "spark_home"]

_SUBMIT = "org.apache.spark.deploy.SparkSubmit"
_GATEWAY = "org.apache.spark.api.python.PythonGatewayServer"
_LAUNCHER = "org.apache.spark.launcher.Main"
_LAUNCHER_SECONDS = 120
_LAUNCHER_VARIABLES = ("SPARK", "JAVA", "JDK", "HADOOP", "YARN", "CLASSPATH")
_PLACE = "/penstock-session-directory"
# Settings that only SparkSubmit handles.
_SUBMITTED = ("spark.jars", "spark.files", "spark.archives", "spark.submit.", "spark.driver.userClassPathFirst")
_OWN_CONFIGURATION = ("spark-defaults.conf", "spark-env.sh")


def spark_home() -> str:
    """Return the directory of Spark's programs and jars."""
    return str(_find_spark_home())


@dataclass(slots=True)
class LaunchCommand:
    """The command to run, and its environment."""

    arguments: list[str]
    environment: dict[str, str]


def launch_command(conf: Mapping[str, str]) -> LaunchCommand:
    """Return the fast command if it is equivalent to Spark's own, otherwise Spark's own."""
    home = Path(spark_home())
    if is_plain_local(conf, home):
        java = _java_command(conf, home)
        if java is not None:
            properties = [f"-D{key}={value}" for key, value in conf.items()]
            return LaunchCommand([*java, *class_archive.java_options(), *properties, _GATEWAY], _environment())
    submit = [str(home / "bin" / "spark-submit")]
    for key, value in conf.items():
        submit += ["--conf", f"{key}={value}"]
    return LaunchCommand([*submit, "pyspark-shell"], dict(os.environ))


def is_plain_local(conf: Mapping[str, str], home: Path) -> bool:
    """Whether no setting requires SparkSubmit."""
    master = conf.get("spark.master", "")
    if sys.platform == "win32" or not (master == "local" or master.startswith("local[")):
        return False
    if any(key.startswith(_SUBMITTED) for key in conf) or "PYSPARK_SUBMIT_ARGS" in os.environ:
        return False
    directory = Path(os.environ.get("SPARK_CONF_DIR") or home / "conf")
    return not any((directory / name).exists() for name in _OWN_CONFIGURATION)


def _java_command(conf: Mapping[str, str], home: Path) -> list[str] | None:
    """Return Java, its class path and its options from Spark's launcher, or None if it does not provide them."""
    java_home = os.environ.get("JAVA_HOME")
    java = str(Path(java_home, "bin", "java")) if java_home else "java"
    launcher = next(home.glob("jars/spark-launcher_*.jar"), None)
    if launcher is None:
        return None
    scala = launcher.name.removeprefix("spark-launcher_").partition("-")[0]
    command = [java, "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", f"{home}/jars/*", _LAUNCHER, _SUBMIT]
    # The answer contains the session's directory, which changes each time: ask without it.
    directory = _temporary_directory(conf)
    for key in ("spark.driver.memory", "spark.driver.extraJavaOptions", "spark.driver.extraClassPath"):
        if key in conf:
            command += ["--conf", f"{key}={conf[key].replace(directory, _PLACE) if directory else conf[key]}"]
    environment = {**os.environ, "SPARK_HOME": str(home), "SPARK_SCALA_VERSION": scala}
    words = _answer(command, environment)
    if words is None or _SUBMIT not in words:
        return None
    return [word.replace(_PLACE, directory or _PLACE) for word in words[: words.index(_SUBMIT)]]


def _temporary_directory(conf: Mapping[str, str]) -> str | None:
    found = re.search(r"-Djava\.io\.tmpdir=(\S+)", conf.get("spark.driver.extraJavaOptions", ""))
    return None if found is None else found[1]


def _answer(command: list[str], environment: Mapping[str, str]) -> list[str] | None:
    """Return the answer of Spark's launcher. It needs a separate JVM, so answers are in the cache directory."""
    cached = _cache_of(command, environment)
    with contextlib.suppress(OSError, ValueError):
        words: list[str] = json.loads(cached.read_text(encoding="utf-8"))
        return words
    try:
        answer = subprocess.run(  # noqa: S603 - Spark's own launcher
            [*command, "pyspark-shell"], env=environment, capture_output=True, timeout=_LAUNCHER_SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    words = [word.strip() for word in os.fsdecode(answer.stdout).split("\0") if word.strip()]
    with contextlib.suppress(OSError, UnicodeError):
        cached.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=cached.parent, delete=False, encoding="utf-8") as file:
            json.dump(words, file)
        Path(file.name).replace(cached)
    return words


def _cache_of(command: list[str], environment: Mapping[str, str]) -> Path:
    """Return the file of an answer. It depends on the command, on variables of Spark and Java, and on the Java."""
    variables = sorted(item for item in environment.items() if any(part in item[0] for part in _LAUNCHER_VARIABLES))
    java = shutil.which(command[0])
    which = "" if java is None else f"{Path(java).resolve()} {Path(java).stat().st_mtime_ns}"
    digest = hashlib.sha256(json.dumps([command, variables, which, pyspark.__version__]).encode()).hexdigest()[:16]
    return jvm_classes.cache_directory() / f"launch-{digest}.json"


def _environment() -> dict[str, str]:
    environment = dict(os.environ)
    # Without it, Spark does not add pyspark's zip file to the workers' path.
    environment.pop("SPARK_HOME", None)
    # Everything stays on this machine, and looking up its name may take seconds if name resolution is broken.
    environment.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    place = str(Path(pyspark.__file__).parent.parent)
    if place not in {*site.getsitepackages(), site.getusersitepackages()}:
        inherited = environment.get("PYTHONPATH", "").split(os.pathsep)
        environment["PYTHONPATH"] = os.pathsep.join([place, *filter(None, inherited)])
    return environment
