"""`/jars`, also as `/programs`: upload, list, run and delete programs."""

from __future__ import annotations

import shlex
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from penstock.cluster.detached_program import PlanningError, Started, plan_program
from penstock.cluster.program_store import ProgramStore, StoredProgram, entry_points
from penstock.cluster.rest.jobs import Json
from penstock.cluster.rest.responses import RestError, bad_parameter, json_response, parse_id, read_body

__all__ = ["program_routes"]

_CHUNK = 1 << 20
_PLAN_SECONDS = 60.0  # penstock.submit.timeout
Run = Callable[[list[str], Path], Started]


def program_routes(store: ProgramStore, run: Run, address: Callable[[], str]) -> list[BaseRoute]:
    """Return the endpoints for a store of programs. `run` starts `penstock run` with arguments and a log file."""
    programs = _Programs(store, run, address)
    routes: list[BaseRoute] = []
    for prefix in ("", "/v1"):
        for name in ("jars", "programs"):
            base = f"{prefix}/{name}"
            routes += [
                Route(f"{base}/upload", programs.upload, methods=["POST"]),
                Route(base, programs.listing),
                Route(f"{base}/{{program_id}}", programs.delete, methods=["DELETE"]),
                Route(f"{base}/{{program_id}}/run", programs.run, methods=["POST"]),
                Route(f"{base}/{{program_id}}/run-application", programs.run_application, methods=["POST"]),
                Route(f"{base}/{{program_id}}/plan", programs.plan, methods=["GET", "POST"]),
            ]
    return routes


@dataclass(frozen=True, slots=True)
class _Programs:
    store: ProgramStore
    start: Run
    address: Callable[[], str]

    async def upload(self, request: Request) -> Response:
        async with request.form() as form:
            files = [value for _, value in form.multi_items() if isinstance(value, UploadFile)]
            if len(files) != 1:
                raise RestError(400, f"Exactly 1 file must be sent, received {len(files)}.")
            program = await self.store.save(files[0].filename or "", _chunks(files[0]))
        return json_response({"filename": str(program.path), "status": "success"})

    async def listing(self, request: Request) -> Response:
        files = await run_in_threadpool(lambda: [_listed(program) for program in self.store.all()])
        return json_response({"address": self.address(), "files": files})

    async def delete(self, request: Request) -> Response:
        self.store.remove(request.path_params["program_id"])
        return json_response({})

    async def run(self, request: Request) -> Response:
        job_id = await self._started(request)
        return json_response({"jobid": job_id, "applicationId": job_id})

    async def run_application(self, request: Request) -> Response:
        return json_response({"applicationid": await self._started(request)}, 202)  # Flink spells it like this here

    async def _started(self, request: Request) -> str:
        program = self.store.find(request.path_params["program_id"])
        body = await read_body(request)
        arguments = run_arguments(program, body, dict(request.query_params))
        log = self.store.directory.parent / "log" / f"{program.program_id}.log"
        log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = await run_in_threadpool(self.start, arguments, log)
        if found.job_id is None:
            how = "ended without calling execute()" if found.exit_code == 0 else "failed before it started a job"
            raise RestError(400, f"The program {how}.\n{found.last_lines()}")
        return found.job_id

    async def plan(self, request: Request) -> Response:
        program = self.store.find(request.path_params["program_id"])
        arguments = plan_arguments(program, await read_body(request), dict(request.query_params))
        try:
            found = await run_in_threadpool(plan_program, arguments, self.store.directory, _PLAN_SECONDS)
        except PlanningError as error:
            raise RestError(400, str(error)) from None
        return Response(found, media_type="application/json; charset=UTF-8")


async def _chunks(file: UploadFile) -> AsyncIterator[bytes]:
    while chunk := await file.read(_CHUNK):
        yield chunk


def _listed(program: StoredProgram) -> Json:
    return {
        "id": program.program_id,
        "name": program.name,
        "uploaded": program.uploaded,
        "entry": [{"name": name, "description": None} for name in entry_points(program.path)],
    }


def run_arguments(program: StoredProgram, body: Json, query: dict[str, str]) -> list[str]:
    """Return the command line of `penstock run` for a request. The body takes precedence over the query.

    >>> stored = StoredProgram("1_job.py", Path("/programs/1_job.py"), 0)
    >>> run_arguments(stored, {"parallelism": "4", "programArgs": "--topic 'my orders'"}, {})
    ['--parallelism', '4', '/programs/1_job.py', '--topic', 'my orders']
    """
    arguments: list[str] = []
    savepoint = body.get("savepointPath") or query.get("savepointPath")
    if savepoint:
        arguments += ["--from-savepoint", savepoint]
    if _is_true(_given("allowNonRestoredState", body, query)):
        arguments.append("--allow-non-restored-state")
    job_id = body.get("jobId") or query.get("jobId")
    if job_id:
        arguments += ["-D", f"pipeline.jobid={parse_id(str(job_id), 'jobId')}"]
    return [*arguments, *plan_arguments(program, body, query)]


def plan_arguments(program: StoredProgram, body: Json, query: dict[str, str]) -> list[str]:
    """Return the part of the command line for `penstock plan`: settings, the program and its arguments."""
    arguments: list[str] = []
    parallelism = _given("parallelism", body, query)
    if parallelism not in {None, ""}:
        if not str(parallelism).isdigit() or int(parallelism) < 1:
            raise bad_parameter("query", "parallelism", str(parallelism))
        arguments += ["--parallelism", str(parallelism)]
    settings: Json = body.get("flinkConfiguration") or {}
    for key, value in settings.items():
        arguments += ["-D", f"{key}={value}"]
    entry = body.get("entryClass") or query.get("entry-class")
    if entry:
        arguments += ["--entry", str(entry)]
    return [*arguments, str(program.path), *_program_arguments(body, query)]


def _program_arguments(body: Json, query: dict[str, str]) -> list[str]:
    listed = body.get("programArgsList")
    if listed:
        return [str(argument) for argument in listed]
    text = body.get("programArgs") or query.get("programArg") or query.get("program-args") or ""
    return shlex.split(text)


def _given(name: str, body: Json, query: dict[str, str]) -> Any:
    """Flink's dashboard sends every member of the body, null where the user has typed nothing."""
    value = body.get(name)
    return query.get(name) if value is None else value


def _is_true(value: Any) -> bool:
    return str(value).lower() == "true"
