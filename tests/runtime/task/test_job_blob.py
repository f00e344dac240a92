"""The job as bytes: what travels to the workers, and what cannot."""

import subprocess
import sys
import textwrap
import threading
import types

import pytest

from penstock.common.errors import SerializationError
from penstock.runtime.operators.operator import JobInfo
from penstock.runtime.operators.stateless import MapOperator
from penstock.runtime.plan.job_vertex import ChainedOperator, JobVertex
from penstock.runtime.task.job_blob import pack_job, unpack_job
from penstock.runtime.task.job_spec import JobSpec


def spec_of(function, job_id=""):
    operator = ChainedOperator("id", "my map", MapOperator(function), None, None, 128)
    vertex = JobVertex(0, "my map", 1, 128, [operator], source_bounded=True)
    return JobSpec(info=JobInfo(job_id=job_id), vertices=(vertex,), edges={}, channels=1, levels=0)


def capturing(secret):
    return lambda value: (value, secret)


def function_in(spec):
    return spec.vertices[0].operators[0].operator.function


def test_functions_with_their_captured_variables_come_back():
    offset = [10]
    assert function_in(unpack_job(pack_job(spec_of(lambda value: value + offset[0]))))(5) == 15


def test_every_unpacking_gives_objects_of_its_own():
    class Counter:
        count = 0

        def __call__(self, value):
            self.count += 1
            return self.count

    blob = pack_job(spec_of(Counter()))
    first, second = function_in(unpack_job(blob)), function_in(unpack_job(blob))
    assert [first(0), first(0), second(0)] == [1, 2, 1]


@pytest.mark.parametrize(
    ("function", "culprit"),
    [
        (type("WithLock", (), {"__init__": lambda self: setattr(self, "guard", threading.Lock())})(), "guard"),
        (capturing(threading.Lock()), "secret"),
        ({"deep": [threading.Lock()]}, "deep.0"),
    ],
    ids=["member", "captured variable", "inside containers"],
)
def test_what_cannot_be_pickled_is_named(function, culprit):
    with pytest.raises(SerializationError) as caught:
        pack_job(spec_of(function))
    text = str(caught.value)
    assert "operator 'my map' cannot be sent to the workers" in text
    assert culprit in text
    assert "lock" in text
    assert "open()" in text


def test_a_worker_finds_modules_that_lie_beside_the_program(tmp_path):
    """The path of the driver is known in the worker before the functions are."""
    (tmp_path / "beside.py").write_text("def double(value):\n    return 2 * value\n")
    program = textwrap.dedent(
        """
        import sys
        sys.path.append(sys.argv[1])
        import beside
        from penstock.runtime.plan.job_vertex import ChainedOperator, JobVertex
        from penstock.runtime.task.job_blob import pack_job
        from penstock.runtime.operators.operator import JobInfo
        from penstock.runtime.operators.stateless import MapOperator
        from penstock.runtime.task.job_spec import JobSpec
        operator = ChainedOperator("id", "map", MapOperator(beside.double), None, None, 128)
        vertex = JobVertex(0, "map", 1, 128, [operator], True)
        spec = JobSpec(info=JobInfo(), vertices=(vertex,), edges={}, channels=1, levels=0)
        sys.stdout.buffer.write(pack_job(spec))
        """
    )
    environment = {"PYTHONPATH": ":".join(sys.path)}
    blob = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], env=environment, capture_output=True, check=True
    ).stdout
    before = list(sys.path)
    try:
        assert function_in(unpack_job(blob))(21) == 42
    finally:
        sys.path[:] = before
        sys.modules.pop("beside", None)


def test_a_worker_gets_the_classes_of_the_newest_version_of_a_job_and_no_other_jobs_ones(monkeypatch):
    worker = types.ModuleType("__main__")

    def classes_after(job_id, value):
        driver = types.ModuleType("__main__")
        driver.Held = type("Held", (), {"__module__": "__main__", "__qualname__": "Held", "value": value})
        monkeypatch.setitem(sys.modules, "__main__", driver)
        blob = pack_job(spec_of(len, job_id))
        monkeypatch.setitem(sys.modules, "__main__", worker)
        unpack_job(blob)
        return worker.Held.value

    assert classes_after("one", 1) == 1
    assert classes_after("one", 2) == 2
    assert classes_after("another", 3) == 2  # of a job that runs beside it
    assert classes_after("one", 4) == 4
