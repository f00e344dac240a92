"""How a service starts the programs that were uploaded."""

import pytest

from penstock.cli.job_records import JobRecord, JobRecords
from penstock.cluster import session_service
from penstock.cluster.detached_program import Started
from penstock.cluster.rest.responses import RestError
from penstock.cluster.session_service import SessionService

JOB = "c" * 32


@pytest.fixture
def started(monkeypatch):
    """The command lines of the programs that were started."""
    found = []

    def start(arguments, log):
        found.append(arguments)
        return Started(1, JOB, None, log)

    monkeypatch.setattr(session_service, "start_program", start)
    return found


@pytest.fixture
def records(tmp_path):
    return JobRecords(tmp_path / "jobs")


def run(service, arguments, tmp_path):
    return service._run_program(arguments, tmp_path / "log")  # the endpoint that calls it needs a running service


def test_o22_a_job_of_a_session_has_a_checkpoint_directory_of_its_own(tmp_path, records, started):
    service = SessionService(tmp_path / "service", records)
    for _ in range(2):
        run(service, ["job.py"], tmp_path)
    first, second = (arguments[1].partition("=")[2] for arguments in started)
    assert first.startswith(f"file://{tmp_path}/service/checkpoints/")
    assert first != second


def test_o22_a_request_may_name_the_checkpoint_directory(tmp_path, records, started):
    run(
        SessionService(tmp_path / "service", records),
        ["-D", "execution.checkpointing.dir=s3://bucket/a", "job.py"],
        tmp_path,
    )
    assert started == [["-D", "execution.checkpointing.dir=s3://bucket/a", "job.py"]]


def test_o14_a_job_keeps_the_id_and_the_checkpoints_that_belong_to_it(tmp_path, records, started):
    service = SessionService(tmp_path / "service", records)
    run(service, ["-D", f"pipeline.jobid={JOB}", "job.py"], tmp_path)
    assert started[0][1] == f"execution.checkpointing.dir=file://{tmp_path}/service/checkpoints/{JOB}"
    records.write(JobRecord(JOB, "job", "RUNNING", "job.py", 1, 1.0, "/nowhere"))
    with pytest.raises(RestError, match="is running"):
        run(service, ["-D", f"pipeline.jobid={JOB}", "job.py"], tmp_path)


def test_o20_of_a_cluster_of_services_every_job_is_kept_before_it_starts(tmp_path, records, started):
    service = SessionService(tmp_path / "service", records, shared=tmp_path / "shared")
    run(service, ["job.py"], tmp_path)
    (arguments,) = started
    job_id = arguments[1].partition("=")[2]
    assert (arguments[0], len(job_id)) == ("-D", 32)
    (kept,) = service._store.all()  # what the next leader reads
    assert (kept.job_id, kept.arguments) == (job_id, arguments)
