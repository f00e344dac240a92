"""A real YARN for tests: resource manager and one node manager, out of the jars that Maven fetches."""

import contextlib
import json
import os
import urllib.request
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path

import pyspark
import pytest
from tests.connectors.servers import free_port, running, temporary_directory, wait_for

from penstock.spark.java import find_java
from penstock.testing.maven import maven_jars
from penstock.testing.server import ServerUnavailableError

VERSION = "3.5.0"
ARTIFACTS = [
    ("org.apache.hadoop", "hadoop-minicluster", VERSION),
    ("org.junit.jupiter", "junit-jupiter-api", "5.13.3"),  # the mini-cluster needs it, and does not depend on it
]
SPARK = Path(pyspark.__file__).parent
SETTINGS = {
    "yarn.resourcemanager.hostname": "127.0.0.1",
    "yarn.nodemanager.hostname": "127.0.0.1",
    "yarn.nodemanager.vmem-check-enabled": "false",
    "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": "99",
    "yarn.minicluster.yarn.nodemanager.resource.memory-mb": "6144",
    "yarn.nodemanager.resource.cpu-vcores": "8",
    "yarn.scheduler.minimum-allocation-mb": "256",
    "yarn.scheduler.capacity.maximum-am-resource-percent": "1.0",
    "yarn.nodemanager.delete.debug-delay-sec": "600",
    "yarn.minicluster.fixed.ports": "true",
}
# With ports that the mini-cluster chooses, the address of YARN's proxy has the port 0.
ADDRESSES = (
    *(f"yarn.resourcemanager.{of}address" for of in ("", "scheduler.", "resource-tracker.", "admin.", "webapp.")),
    *(f"yarn.nodemanager.{of}address" for of in ("", "localizer.", "webapp.", "collector-service.")),
)


@dataclass
class YarnCluster:
    process: int
    configuration: Path
    """For `HADOOP_CONF_DIR`."""
    web: str
    directory: Path

    def applications(self):
        with urllib.request.urlopen(f"{self.web}/ws/v1/cluster/apps", timeout=60) as answer:
            return ((json.load(answer)["apps"]) or {"app": []})["app"]

    def logs(self):
        """The ends of what the containers have written, so that a failure can be read."""
        found = [path for name in ("stdout", "stderr", "prelaunch.err") for path in self.directory.rglob(name)]
        return "\n".join(f"== {path}\n{path.read_text(errors='replace')[-4000:]}" for path in found)


@contextlib.contextmanager
def yarn_cluster():
    java = find_java()
    if java is None:
        pytest.skip("YARN needs Java")
    try:
        jars = maven_jars("hadoop-yarn", VERSION, ARTIFACTS)
    except ServerUnavailableError as error:
        pytest.skip(str(error))
    # Spark brings Janino, which compiles the launcher on a runtime without a compiler.
    compiler = [next(SPARK.glob(f"jars/{name}-[0-9]*.jar")) for name in ("janino", "commons-compiler")]
    with temporary_directory(None) as directory:
        configuration, output = directory / "conf", directory / "output"
        configuration.mkdir()
        command = [
            str(java / "bin" / "java"),
            "-Xmx512m",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            "--add-opens=java.base/java.lang=ALL-UNNAMED",
            "-cp",
            ":".join([f"{jars}/*", *map(str, compiler)]),
            "org.codehaus.janino.SimpleCompiler",
            str(Path(__file__).with_name("YarnCluster.java")),
            "YarnCluster",
            str(configuration / "yarn-site.xml"),
            *[f"{name}={value}" for name, value in SETTINGS.items()],
            *[f"{name}=127.0.0.1:{free_port()}" for name in ADDRESSES],
        ]
        environment = {**os.environ, "JAVA_HOME": str(java)}
        with running(command, output, cwd=directory, env=environment) as process:
            wait_for((configuration / "yarn-site.xml").exists, process, 180, output)
            found = {
                one.findtext("name"): one.findtext("value")
                for one in ET.parse(configuration / "yarn-site.xml").getroot().iter("property")
            }
            (configuration / "core-site.xml").write_text(
                f"<configuration><property><name>hadoop.tmp.dir</name><value>{directory}/tmp</value></property>"
                "</configuration>"
            )
            web = f"http://{found['yarn.resourcemanager.webapp.address']}"
            yield YarnCluster(process.pid, configuration, web, directory)
