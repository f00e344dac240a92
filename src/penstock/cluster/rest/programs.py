"""`/jars`, also as `/programs`: uploading, listing, running and deleting programs."""

from __future__ import annotations

import shlex
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from penstock.cluster.detached_program import Started
from penstock.cluster.program_store import ProgramStore, StoredProgram
from penstock.cluster.rest.job_control import read_body
from penstock.cluster.rest.jobs import Json
from penstock.cluster.rest.responses import RestError, bad_parameter, json_response

__all__ = ["program_routes"]

_CHUNK = 1 << 20
Run = Callable[[list[str], Path], Started]


def program_routes(store: ProgramStore, run: Run, address: Callable[[], str]) -> list[BaseRoute]:
    """The endpoints over a store of programs; `run` starts `penstock run` with arguments and a log file."""

    async def upload(request: Request) -> Response:
        form = await request.form()
        files = [value for _, value in form.multi_items() if isinstance(value, UploadFile)]
        if len(files) != 1:
            raise RestError(400, f"Exactly 1 file must be sent, received {len(files)}.")
        program = await store.save(files[0].filename or "", _chunks(files[0]))
        return json_response({"filename": str(program.path), "status": "success"})

    async def listing(request: Request) -> Response:
        return json_response({"address": address(), "files": [_listed(program) for program in store.all()]})

    async def delete(request: Request) -> Response:
        store.remove(request.path_params["program_id"])
        return json_response({})

    async def start(request: Request) -> Response:
        program = store.find(request.path_params["program_id"])
        body = await read_body(request)
        arguments = run_arguments(program, body, dict(request.query_params))
        log = store.directory.parent / "log" / f"{program.program_id}.log"
        log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        started = await run_in_threadpool(run, arguments, log)
        if started.job_id is None:
            how = "ended without calling execute()" if started.exit_code == 0 else "failed before it started a job"
            raise RestError(400, f"The program {how}.\n{started.last_lines()}")
        return json_response({"jobid": started.job_id, "applicationId": started.job_id})

    routes: list[BaseRoute] = []
    for prefix in ("", "/v1"):
        for name in ("jars", "programs"):
            base = f"{prefix}/{name}"
            routes += [
                Route(f"{base}/upload", upload, methods=["POST"]),
                Route(base, listing),
                Route(f"{base}/{{program_id}}", delete, methods=["DELETE"]),
                Route(f"{base}/{{program_id}}/run", start, methods=["POST"]),
            ]
    return routes


async def _chunks(file: UploadFile) -> AsyncIterator[bytes]:
    while chunk := await file.read(_CHUNK):
        yield chunk


def _listed(program: StoredProgram) -> Json:
    return {
        "id": program.program_id,
        "name": program.name,
        "uploaded": program.uploaded,
        "entry": [{"name": "", "description": None}],
    }


def run_arguments(program: StoredProgram, body: Json, query: dict[str, str]) -> list[str]:
    """The command line of `penstock run` for a request; the body wins over the query.

    >>> stored = StoredProgram("1_job.py", Path("/programs/1_job.py"), 0)
    >>> run_arguments(stored, {"parallelism": "4", "programArgs": "--topic 'my orders'"}, {})
    ['--parallelism', '4', '/programs/1_job.py', '--topic', 'my orders']
    """
    arguments: list[str] = []
    parallelism = body.get("parallelism", query.get("parallelism"))
    if parallelism not in {None, ""}:
        if not str(parallelism).isdigit() or int(parallelism) < 1:
            raise bad_parameter("query", "parallelism", str(parallelism))
        arguments += ["--parallelism", str(parallelism)]
    savepoint = body.get("savepointPath") or query.get("savepointPath")
    if savepoint:
        arguments += ["--from-savepoint", savepoint]
    if _is_true(body.get("allowNonRestoredState", query.get("allowNonRestoredState"))):
        arguments.append("--allow-non-restored-state")
    settings: Json = body.get("flinkConfiguration") or {}
    for key, value in settings.items():
        arguments += ["-D", f"{key}={value}"]
    return [*arguments, str(program.path), *_program_arguments(body, query)]


def _program_arguments(body: Json, query: dict[str, str]) -> list[str]:
    listed = body.get("programArgsList")
    if listed:
        return [str(argument) for argument in listed]
    text = body.get("programArgs") or query.get("programArg") or query.get("program-args") or ""
    return shlex.split(text)


def _is_true(value: Any) -> bool:
    return str(value).lower() == "true"
