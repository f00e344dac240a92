"""Leases through Hadoop's file systems, as on HDFS or S3, and what a job does with its lease on Spark."""

import contextlib
import threading

import pytest
from tests.runtime.lease.leases import owner

from penstock.common import Configuration
from penstock.common.errors import CheckpointError, CheckpointInUseError, FencedError, InvalidProgramError
from penstock.datastream import StreamExecutionEnvironment
from penstock.runtime.lease.files import LocalLeaseFiles
from penstock.runtime.lease.lease import Lease
from penstock.spark.checkpoint_lease import HadoopLeaseFiles

pytestmark = pytest.mark.spark


@pytest.fixture
def files(spark, tmp_path):
    return HadoopLeaseFiles(spark, tmp_path.as_uri())


def test_a_file_can_be_created_once(files):
    assert files.create("epoch-000001", b"one")
    assert not files.create("epoch-000001", b"two")
    assert files.read("epoch-000001") == b"one"
    assert files.exists("epoch-000001")
    assert files.names() == ["epoch-000001"]


def test_of_many_drivers_that_start_at_once_one_holds_the_lease(files):
    """Hadoop's local file system looks before it creates a file, and no more than that. A driver whose file another one
    has overwritten notices it before it does anything.
    """
    start, leases = threading.Barrier(4), []

    def drive(number):
        start.wait()
        with contextlib.suppress(CheckpointInUseError):
            leases.append(Lease.acquire(files, owner(f"driver {number}")))

    threads = [threading.Thread(target=drive, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len([lease for lease in leases if holds(lease)]) == 1


def holds(lease):
    try:
        lease.check()
    except FencedError:
        return False
    return True


def test_files_are_written_over_and_removed(files):
    assert files.read("heartbeat-000001") is None
    files.write("heartbeat-000001", b"one")
    files.write("heartbeat-000001", b"two")
    assert files.read("heartbeat-000001") == b"two"
    files.remove("heartbeat-000001")
    files.remove("heartbeat-000001")
    assert not files.exists("heartbeat-000001")


def test_a_lease_is_taken_refused_and_lost_as_on_a_disk(files):
    first = Lease.acquire(files, owner("first"))
    first.check()
    with pytest.raises(CheckpointInUseError, match="job 'first'"):
        Lease.acquire(files, owner("second"))
    second = Lease.acquire(files, owner("second"), take_over=True)
    with pytest.raises(FencedError, match="job 'second'"):
        first.check()
    first.release()
    second.release()
    assert Lease.acquire(files, owner("third")).epoch == 3


def test_a_store_that_cannot_be_reached_is_an_error_that_names_the_directory(spark):
    files = HadoopLeaseFiles(spark, "nowhere://host/checkpoint")
    with pytest.raises(CheckpointError, match="lease of the checkpoint directory nowhere://host/checkpoint"):
        files.create("epoch-000001", b"")


# -- jobs ---------------------------------------------------------------------------------------------------------


def program(spark, directory, *, parallelism=1, **settings):
    configuration = Configuration.from_dict(settings)
    env = StreamExecutionEnvironment(configuration, spark=spark).set_parallelism(parallelism)
    env.get_checkpoint_config().set_checkpoint_storage(directory.as_uri())
    env.from_sequence(1, 10).key_by(lambda n: n % 3).reduce(lambda a, b: a + b).print()
    return env


def test_a_job_gives_its_lease_back_when_it_ends(spark, tmp_path):
    for epoch in (1, 2):
        program(spark, tmp_path).execute()
        assert [path.name for path in (tmp_path / "lease").glob("epoch-*")] == [f"epoch-00000{epoch}"]


def test_a_job_that_is_refused_by_its_checkpoint_gives_the_lease_back(spark, tmp_path):
    program(spark, tmp_path).execute()
    for _ in range(2):
        env = program(spark, tmp_path, parallelism=2)
        with pytest.raises(InvalidProgramError, match="parallelism 1"):
            env.execute()


def test_two_jobs_of_one_program_cannot_share_a_directory_and_the_first_runs_on(spark, tmp_path):
    held = Lease.acquire(LocalLeaseFiles(str(tmp_path), tmp_path / "lease"), owner("the first one"))
    with pytest.raises(CheckpointInUseError, match="job 'the first one'"):
        program(spark, tmp_path).execute()
    assert [path.name for path in tmp_path.iterdir()] == ["lease"]
    held.check()
    env = program(spark, tmp_path, **{"penstock.lease.take-over": "true"})
    env.execute()
    with pytest.raises(FencedError):
        held.check()


def test_the_timeout_is_a_duration_above_zero(spark, tmp_path):
    with pytest.raises(InvalidProgramError, match=r"penstock\.lease\.timeout must be positive"):
        program(spark, tmp_path, **{"penstock.lease.timeout": "0 s"}).execute()


def test_the_offsets_in_sparks_log_have_the_epoch_of_the_driver_that_planned_them(spark, tmp_path):
    program(spark, tmp_path).execute()
    assert '"epoch":1' in (tmp_path / "offsets" / "0").read_text().replace(" ", "").replace("\\", "")
