"""Which checkpoints go with their job (rules DD10 to DD12); what happens then is in test_savepoints.py."""

import pytest

from penstock.common import JobStatus
from penstock.spark.streaming_job import is_disposable

KEPT = {
    None: {JobStatus.CANCELED, JobStatus.FAILED, JobStatus.FINISHED},
    "RETAIN_ON_CANCELLATION": {JobStatus.CANCELED, JobStatus.FAILED, JobStatus.FINISHED},
    "DELETE_ON_CANCELLATION": {JobStatus.FAILED, JobStatus.FINISHED},
    "NO_EXTERNALIZED_CHECKPOINTS": set(),
}


@pytest.mark.parametrize("retention", list(KEPT))
def test_checkpoints_are_kept_after_a_failure_unless_they_are_not_externalized_at_all(retention):
    ends = (JobStatus.CANCELED, JobStatus.FAILED, JobStatus.FINISHED)
    assert {status for status in ends if not is_disposable(retention, status)} == KEPT[retention]
