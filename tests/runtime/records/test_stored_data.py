"""What earlier versions have stored can be continued."""

import pytest
from tests.fixtures import continued

from penstock.state_processor import SavepointReader


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    return continued.run_on_mini_cluster(tmp_path_factory.mktemp("undisturbed"))


@pytest.fixture
def savepoint(tmp_path):
    return str(continued.unpack("every-kind-savepoint", tmp_path / "savepoint"))


@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_a_job_continues_from_a_savepoint_with_every_kind_of_state(tmp_path, savepoint, undisturbed, parallelism):
    after = continued.run_on_mini_cluster(
        tmp_path / "out", parallelism=parallelism, savepoint=savepoint, clock=continued.AFTER_FAR_FUTURE
    )
    found = continued.committed_before(savepoint) + after
    continued.assert_continued(found, undisturbed, continued.STORED_PHASES, processing_timers=True)


def test_the_savepoint_holds_every_kind_of_state(savepoint):
    reader = SavepointReader.read(savepoint).verify()
    kinds = {state["kind"] for operator in reader.manifest.operators.values() for state in operator.keyed_states}
    assert {"value state", "list state", "map state", "reducing state", "aggregating state"} <= kinds
    modes = {mode for operator in reader.manifest.operators.values() for mode in operator.operator_states.values()}
    assert modes == {"split", "union", "broadcast", "raw"}
    assert {kind for _, kind, *_ in reader.read_timers("kinds")} == {"EVENT_TIME", "PROCESSING_TIME"}
    [large] = [values for _, values in reader.read_keyed_state("kinds", "large list") if values]
    assert len(large) > 200
