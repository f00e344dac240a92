"""Encode the job as bytes for the workers, and decode it.

Classes of the user's main program travel by value once, with the job. Workers then have them under `__main__`, so that
records and state pickle by reference, in C.
"""

from __future__ import annotations

import pickle
import sys
import types
from typing import Any

import cloudpickle

from penstock.common.errors import SerializationError, shorten
from penstock.runtime.task.job_spec import JobSpec

_installed: dict[str, tuple[types.ModuleType, str]] = {}
"""The job of each class of the main program: a later version of the job brings a later version of the class."""


def pack_job(spec: JobSpec) -> bytes:
    """Pickle a job with everything that its functions refer to."""
    try:
        content = cloudpickle.dumps((_main_classes(), spec), 5)
    except Exception as error:
        raise _explain(spec, error) from error
    return pickle.dumps(([entry for entry in sys.path if entry], content), 5)


def unpack_job(blob: bytes) -> JobSpec:
    """Decode the job in a worker. Every call returns new function objects, so that each task has its own."""
    path, content = pickle.loads(blob)
    for entry in path:  # before unpickling: modules of the functions may be only on this path
        if entry not in sys.path:
            sys.path.append(entry)
    classes, spec = pickle.loads(content)
    main = sys.modules["__main__"]
    assert isinstance(spec, JobSpec)
    job_id = spec.info.job_id
    for name, cls in classes.items():
        if not hasattr(main, name) or (main, job_id) == _installed.get(name):
            setattr(main, name, cls)
            _installed[name] = (main, job_id)
    return spec


def _main_classes() -> dict[str, type]:
    main = sys.modules.get("__main__")
    if main is None:
        return {}
    found = {}
    for name, value in vars(main).items():
        if isinstance(value, type) and value.__module__ == "__main__" and value.__qualname__ == name:
            try:
                cloudpickle.dumps(value)
            except Exception:  # noqa: S112 - the error appears where the class is used
                continue
            found[name] = value
    return found


def _explain(spec: JobSpec, error: Exception) -> SerializationError:
    """Name the operator, and its member, that cannot be sent to the workers."""
    for vertex in spec.vertices:
        for chained in vertex.operators:
            for part in (chained.operator, chained.source):
                if part is not None and not _pickles(part):
                    culprit = _culprit(part)
                    return SerializationError(
                        f"operator '{chained.name}' cannot be sent to the workers: {culprit} cannot be pickled "
                        f"({_reason(part) or error}); create it on the worker, in the open() method of the "
                        "function's class"
                    )
    return SerializationError(f"the job cannot be sent to the workers: {error}")


def _pickles(value: Any) -> bool:
    return _reason(value) is None


def _reason(value: Any) -> str | None:
    try:
        cloudpickle.dumps(value)
    except Exception as error:
        return str(error)
    return None


def _culprit(value: Any, path: str = "", depth: int = 0) -> str:
    """Return the path to the innermost member or closure variable that cannot be pickled."""
    if depth < 6:
        for name, member in _members(value):
            if not _pickles(member):
                return _culprit(member, f"{path}.{name}" if path else name, depth + 1)
    where = f"'{path}' = " if path else ""
    return f"{where}{shorten(value, 80)}"


def _members(value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, types.MethodType):
        return _members(value.__self__)
    if isinstance(value, types.FunctionType):
        closure = value.__closure__ or ()
        members = list(zip(value.__code__.co_freevars, [cell.cell_contents for cell in closure], strict=False))
        members += [(name, value.__globals__[name]) for name in value.__code__.co_names if name in value.__globals__]
        return members
    if isinstance(value, dict):
        return [(str(key), member) for key, member in value.items()]
    if isinstance(value, (list, tuple)):
        return [(str(position), member) for position, member in enumerate(value)]
    return list(vars(value).items()) if hasattr(value, "__dict__") and not isinstance(value, type) else []
