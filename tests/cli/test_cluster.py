"""``penstock cluster``: a service in the background."""

import json
import os
import urllib.error
import urllib.request

import pytest

from penstock.cli.job_records import JobRecord, JobRecords
from penstock.cli.main import main

PROGRAM_WITHOUT_JOB = "print('nothing to run')\n"


@pytest.fixture
def service(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PENSTOCK_JOBS", str(tmp_path / "jobs"))
    directory = str(tmp_path / "cluster")
    assert main(["cluster", "start", "--dir", directory, "--port", "0"]) == 0
    url = capsys.readouterr().out.split()[4]
    yield directory, url
    main(["cluster", "stop", "--dir", directory])


def get(url):
    with urllib.request.urlopen(url, timeout=10) as answer:
        return json.loads(answer.read())


def test_o3_a_second_start_says_where_the_service_is(service, capsys):
    directory, url = service
    assert main(["cluster", "start", "--dir", directory]) == 0
    assert url in capsys.readouterr().out


def test_o1_the_service_answers_until_it_is_stopped(service, capsys):
    directory, url = service
    assert get(f"{url}/config")["features"]["web-submit"] is True
    assert main(["cluster", "status", "--dir", directory]) == 0
    assert url in capsys.readouterr().out
    assert main(["cluster", "stop", "--dir", directory]) == 0
    assert main(["cluster", "status", "--dir", directory]) == 1


def test_o2_the_address_may_be_given_by_flinks_keys(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PENSTOCK_JOBS", str(tmp_path / "jobs"))
    directory = str(tmp_path / "cluster")
    settings = ["-D", "rest.bind-address=localhost", "-D", "rest.bind-port=0"]
    assert main(["cluster", "start", "--dir", directory, *settings]) == 0
    url = capsys.readouterr().out.split()[4]
    assert url.startswith(("http://localhost:", "http://127.0.0.1:"))
    assert not url.endswith((":8081", ":0"))
    assert main(["cluster", "stop", "--dir", directory]) == 0


def test_o84_without_users_other_machines_may_not_submit_programs(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PENSTOCK_JOBS", str(tmp_path / "jobs"))
    directory = str(tmp_path / "cluster")
    assert main(["cluster", "start", "--dir", directory, "--host", "0.0.0.0", "--port", "0"]) == 0
    said = capsys.readouterr()
    url = f"http://127.0.0.1:{said.out.split()[4].rpartition(':')[2]}"
    try:
        assert "is reachable from other machines" in said.err
        assert get(f"{url}/config")["features"]["web-submit"] is False
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(upload(url, "job.py", PROGRAM_WITHOUT_JOB), timeout=10)
        assert refused.value.code == 404
    finally:
        assert main(["cluster", "stop", "--dir", directory]) == 0


def upload(url, name, content):
    boundary = "boundary"
    body = (
        f'--{boundary}\r\nContent-Disposition: form-data; name="jarfile"; filename="{name}"\r\n'
        f"Content-Type: application/octet-stream\r\n\r\n{content}\r\n--{boundary}--\r\n"
    ).encode()
    headers = {"Content-Type": f"multipart/form-data; boundary={boundary}"}
    return urllib.request.Request(f"{url}/jars/upload", data=body, headers=headers)


def test_o82_a_program_that_starts_no_job_is_400_with_its_output(service):
    _, url = service
    with urllib.request.urlopen(upload(url, "../../etc/empty.py", PROGRAM_WITHOUT_JOB), timeout=10) as answer:
        assert json.loads(answer.read())["status"] == "success"
    (program,) = get(f"{url}/jars")["files"]
    assert program["name"] == "empty.py"
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(urllib.request.Request(f"{url}/jars/{program['id']}/run", method="POST"), timeout=60)
    assert refused.value.code == 400
    assert "nothing to run" in json.loads(refused.value.read())["errors"][0]


def test_o14_the_id_of_a_running_job_is_409(service, tmp_path):
    _, url = service
    job_id = "7" * 32
    JobRecords().write(JobRecord(job_id, "job", "RUNNING", "/job.py", os.getpid(), 1.0, "/nowhere"))
    urllib.request.urlopen(upload(url, "empty.py", PROGRAM_WITHOUT_JOB), timeout=10).close()
    (program,) = get(f"{url}/jars")["files"]
    body = json.dumps({"jobId": job_id}).encode()
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(urllib.request.Request(f"{url}/jars/{program['id']}/run", body), timeout=60)
    with refused.value as answer:
        assert (answer.code, json.loads(answer.read())["errors"]) == (409, [f"A job with the id {job_id} is running."])
    JobRecords().ended(JobRecords().find(job_id), "FINISHED")


def test_o80_a_jar_is_refused_with_a_hint(service):
    _, url = service
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(upload(url, "job.jar", "x"), timeout=10)
    assert refused.value.code == 400
    assert "Python programs" in json.loads(refused.value.read())["errors"][0]
