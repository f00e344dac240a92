"""Disks that fail under a job on Spark: the error has the path, what is wrong there and what to do."""

import os
import shutil
import subprocess
import time

import pytest
from tests.semantics.support import assert_no_engine_in

from penstock.common import Configuration, WatermarkStrategy
from penstock.common.errors import CheckpointError, StorageError
from penstock.common.serialization import Encoder
from penstock.connectors import DataGeneratorSource
from penstock.connectors.file_system import FileSink
from penstock.datastream import StreamExecutionEnvironment

pytestmark = pytest.mark.spark


class Job:
    """Large state, in many small batches; it ends when its storage does."""

    def __init__(self, spark, checkpoint=None, output=None):
        configuration = Configuration().set_integer("penstock.batch.max-records", 2_000)
        configuration.set_string("restart-strategy.type", "fixed-delay")
        configuration.set_string("restart-strategy.fixed-delay.delay", "1 ms")
        if checkpoint is not None:
            configuration.set_string("execution.checkpointing.dir", str(checkpoint))
        self.env = StreamExecutionEnvironment(configuration, spark=spark).set_parallelism(1)
        source = DataGeneratorSource(lambda index: (index, os.urandom(500).hex()), 5_000_000)
        records = self.env.from_source(source, WatermarkStrategy.no_watermarks(), "records")
        reduced = records.key_by(lambda record: record[0]).reduce(lambda a, b: b)
        if output is None:
            reduced.filter(lambda record: False).print()
        else:
            lines = reduced.map(lambda record: record[1])
            lines.sink_to(FileSink.for_row_format(str(output), Encoder.simple_string_encoder()).build())

    def failure(self):
        with pytest.raises((StorageError, CheckpointError)) as caught:
            self.env.execute()
        assert_no_engine_in(str(caught.value))
        return str(caught.value)


def wait_for(path, client):
    while not path.exists():
        assert not client.get_job_status().result().is_terminal_state()
        time.sleep(0.05)


@pytest.fixture
def small_disk(tmp_path):
    """A file system of a few megabytes, which only root can make."""
    path = tmp_path / "disk"
    path.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", path], check=False, capture_output=True)
    if mounted.returncode:
        pytest.skip("file systems cannot be mounted here")
    yield path
    subprocess.run(["umount", "--lazy", str(path)], check=True)


def test_a_file_where_the_checkpoint_directory_should_be(spark, tmp_path):
    (tmp_path / "file").touch()
    assert f"{tmp_path / 'file'} is a file and not a directory" in Job(spark, tmp_path / "file").failure()


def test_a_checkpoint_on_a_disk_that_fills_up(spark, small_disk):
    message = Job(spark, small_disk / "checkpoint").failure()
    assert f"cannot write to {small_disk / 'checkpoint'}: no space left there" in message
    assert "of 8.0 MB free" in message


def test_results_on_a_disk_that_fills_up(spark, small_disk):
    message = Job(spark, output=small_disk / "results").failure()
    assert f"cannot write to {small_disk / 'results'}: no space left there" in message


def test_a_checkpoint_on_a_file_system_that_becomes_read_only(spark, small_disk):
    job = Job(spark, small_disk / "checkpoint")
    client = job.env.execute_async()
    wait_for(small_disk / "checkpoint" / "commits" / "0", client)
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with pytest.raises(StorageError, match="is on a read-only file system"):
        client.get_job_execution_result().result()


def test_a_checkpoint_directory_that_is_deleted_while_the_job_runs(spark, tmp_path):
    """The job must not go on: Spark would make a new directory, and the state would be gone without a word."""
    directory = tmp_path / "checkpoint"
    client = Job(spark, directory).env.execute_async()
    wait_for(directory / "commits" / "1", client)
    directory.rename(tmp_path / "gone")
    with pytest.raises(CheckpointError, match="was deleted while the job was running") as caught:
        client.get_job_execution_result().result()
    assert_no_engine_in(str(caught.value))
    shutil.rmtree(tmp_path / "gone")
