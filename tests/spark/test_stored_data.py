"""On Spark: what earlier versions have stored can be continued."""

import pytest
from tests.fixtures import continued
from tests.fixtures.every_kind_job import PHASES, Sources, build

from penstock.common import Configuration
from penstock.datastream import StreamExecutionEnvironment

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    return continued.run_on_mini_cluster(tmp_path_factory.mktemp("undisturbed"))


def run(spark, out, settings, parallelism=2):
    Sources.open(continued.STORED_PHASES, PHASES - 1, ends=True)
    configuration = Configuration.from_dict({"penstock.batch.max-records": "40", **settings})
    env = StreamExecutionEnvironment(configuration, spark=spark).set_parallelism(parallelism)
    build(env, out)
    env.execute("every kind")
    return continued.results(out)


def test_a_job_continues_from_a_checkpoint_with_every_kind_of_state(spark, tmp_path, undisturbed):
    """The job crashed between the commit of its sinks and Spark's: the last batch runs again from its logs."""
    continued.unpack("every-kind-checkpoint", tmp_path)
    settings = {"execution.checkpointing.dir": (tmp_path / "checkpoint").as_uri()}
    found = run(spark, tmp_path / "out", settings)
    continued.assert_continued(found, undisturbed, continued.COMMITTED_PHASES)


@pytest.mark.parametrize("parallelism", [2, 3])
def test_a_job_continues_from_a_savepoint_with_every_kind_of_state(spark, tmp_path, undisturbed, parallelism):
    savepoint = str(continued.unpack("every-kind-savepoint", tmp_path / "savepoint"))
    found = run(spark, tmp_path / "out", {"execution.savepoint.path": savepoint}, parallelism)
    found = continued.committed_before(savepoint) + found
    continued.assert_continued(found, undisturbed, continued.STORED_PHASES)
