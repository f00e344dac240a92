"""Damaged checkpoints on Spark: a clear error, never a wrong result, for every kind of file.

A job is stopped in the middle. Then, in a copy of its checkpoint, one file is damaged, and the job is started again.
Storage with checksums of its own notices; other storage does not, so each is tried without Hadoop's, too.
"""

import shutil

import pytest
from chaos_job import build, committed, environment, everything_seen, state_in, stop
from processes import wait_until

from penstock.common.errors import CheckpointError, PenstockError, SavepointError

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

WAIT_SECONDS = 240


def flipped(data):
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 0x11]) + data[middle + 1 :]


def halved(data):
    return data[: len(data) // 2]


def emptied(data):
    return b""


def digit_changed(data):
    """A file that is still well-formed: a number is another one."""
    for position in range(len(data) - 1, -1, -1):
        if 0x30 < data[position] < 0x39:
            return data[:position] + bytes([data[position] + 1]) + data[position + 1 :]
    return flipped(data)


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    """A job that was cancelled after some batches: its checkpoint and its output."""
    from penstock.spark.session import build_session

    directory = tmp_path_factory.mktemp("stopped")
    (directory / "output").mkdir()
    client = start(build_session(master="local[2]"), directory)
    result = client.get_job_execution_result()
    wait_until(lambda: result.done() or len(list((directory / "output").glob("*.json"))) >= 4, WAIT_SECONDS, "commits")
    client.cancel().result(WAIT_SECONDS)
    assert not everything_seen(directory / "output")
    return directory


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    from chaos import undisturbed

    return undisturbed(tmp_path_factory.mktemp("undisturbed"))


def start(spark, directory):
    env = environment(directory / "checkpoint", spark=spark)
    build(env, directory / "output")
    return env.execute_async("damaged")


def newest(directory, pattern):
    found = [path for path in directory.glob(pattern) if not path.name.startswith(".")]
    return max(found, key=lambda path: (len(path.name), path.name))


FILES = {
    "penstock.json": "penstock.json",
    "Spark's metadata": "metadata",
    "the last offsets": "offsets/*",
    "the last commit": "commits/*",
    "state": "state/0/0/*.changelog",
    "the schema of the state": "state/0/_stateSchema/default/*",
    "what Spark says about the state": "state/0/_metadata/v2/*",
}
# Nothing of these is looked at, as long as they can be read.
HARMLESS = {"the last commit", "what Spark says about the state", "the schema of the state", "Spark's metadata"}


DAMAGES = [(flipped, True), (flipped, False), (emptied, False), (halved, True), (digit_changed, False)]


def cases():
    for file in FILES:
        for damage, checksums in DAMAGES[:2] if file in HARMLESS else DAMAGES:
            yield pytest.param(file, damage, checksums, id=f"{file}, {damage.__name__}{' and noticed' * checksums}")


@pytest.mark.parametrize(("file", "damage", "checksums"), list(cases()))
def test_a_damaged_file_is_a_clear_error_and_never_a_wrong_result(
    file, damage, checksums, stopped, expected, spark, tmp_path
):
    shutil.copytree(stopped / "checkpoint", tmp_path / "checkpoint")
    shutil.copytree(stopped / "output", tmp_path / "output")
    path = newest(tmp_path / "checkpoint", FILES[file])
    whole = path.read_bytes()
    path.write_bytes(damage(whole))
    assert path.read_bytes() != whole
    if not checksums:
        for checksum in (tmp_path / "checkpoint").rglob(".*.crc"):
            checksum.unlink()
    try:
        savepoint = stop(start(spark, tmp_path), tmp_path / "output", tmp_path / "savepoints")
    except PenstockError as error:
        assert isinstance(error, (CheckpointError, SavepointError)), repr(error)  # noqa: PT017
        assert "damaged" in str(error) or "cannot be read" in str(error)  # noqa: PT017
    else:
        assert file in HARMLESS or damage in (flipped, digit_changed)  # a byte that does not count
        assert (committed(tmp_path / "output"), state_in(savepoint)) == expected


def of_another_channel(checkpoint):
    paths = [newest(checkpoint, f"state/0/{channel}/*.changelog") for channel in (0, 1)]
    contents = [path.read_bytes() for path in paths]
    for path, content in zip(paths, reversed(contents), strict=True):
        path.write_bytes(content)


def of_the_batch_before(checkpoint):
    path = newest(checkpoint, "state/0/0/*.changelog")
    path.write_bytes(path.with_name(f"{int(path.stem) - 1}.changelog").read_bytes())


@pytest.mark.parametrize("mix_up", [of_another_channel, of_the_batch_before])
def test_files_of_state_that_were_mixed_up_are_noticed_though_each_is_whole(mix_up, stopped, spark, tmp_path):
    shutil.copytree(stopped / "checkpoint", tmp_path / "checkpoint")
    shutil.copytree(stopped / "output", tmp_path / "output")
    mix_up(tmp_path / "checkpoint")
    for checksum in (tmp_path / "checkpoint").rglob(".*.crc"):
        checksum.unlink()
    with pytest.raises(CheckpointError, match=r"damaged|mixed up"):
        start(spark, tmp_path).get_job_execution_result().result(WAIT_SECONDS)


def test_a_checkpoint_that_was_moved_is_continued_where_it_is_now(stopped, expected, spark, tmp_path):
    shutil.copytree(stopped / "checkpoint", tmp_path / "checkpoint")
    shutil.copytree(stopped / "output", tmp_path / "output")
    away = stopped.rename(stopped.with_name("away"))
    try:
        savepoint = stop(start(spark, tmp_path), tmp_path / "output", tmp_path / "savepoints")
        assert not stopped.exists()  # and is written to nowhere else
    finally:
        away.rename(stopped)
    assert (committed(tmp_path / "output"), state_in(savepoint)) == expected
    files = [path for path in (tmp_path / "checkpoint").rglob("*") if path.is_file()]
    assert [path for path in files if str(stopped).encode() in path.read_bytes()] == []
