"""The history server: serves ended jobs from their archives through the REST API."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from penstock.cluster.archive import ArchivedOverviews, archived_answer
from penstock.cluster.dashboard_files import dashboard_routes
from penstock.cluster.rest import overview
from penstock.cluster.rest.app import http_error
from penstock.cluster.rest.jobs import Json
from penstock.cluster.rest.responses import RestError, error_response, json_response, parse_id, server_error
from penstock.cluster.rest.security import BrowserGuard
from penstock.cluster.rest.trimmed_paths import TrimmedPaths

__all__ = ["Archives", "create_history_server"]

_ID = re.compile(r"[0-9a-f]{32}")
_REFRESH_MS = 10_000
_HOSTS = frozenset({"localhost", "127.0.0.1", "[::1]"})


class Archives:
    """All archives below some directories, without unreadable ones."""

    def __init__(self, directories: list[Path]) -> None:
        self._directories = directories
        self._overviews = ArchivedOverviews()

    def paths(self) -> dict[str, Path]:
        """Return the archives by job id."""
        found = (path for directory in self._directories for path in directory.rglob("*"))
        return {path.name: path for path in found if _ID.fullmatch(path.name) and path.is_file()}

    def jobs(self) -> list[Json]:
        """Return the overviews of all jobs, the newest first."""
        overviews = (self._overviews.find(path.parent, job_id) for job_id, path in self.paths().items())
        jobs = [job for job in overviews if job is not None]
        return sorted(jobs, key=lambda job: job["start-time"], reverse=True)

    def answer(self, job_id: str, path: str, query: Mapping[str, str]) -> Response:
        """Answer a path from a job's archive."""
        archive = self.paths().get(parse_id(job_id, "jobid"))
        if archive is not None:
            path = path.replace(job_id, archive.name)  # the ID may be in capitals
        found = None if archive is None else archived_answer(archive.parent, archive.name, path, query)
        if found is None:
            raise RestError(404, f"There is no archive that answers {path}.")
        return json_response(found)


def create_history_server(directories: list[Path], allowed_hosts: frozenset[str] = _HOSTS) -> Starlette:
    """Create the ASGI application for archives."""
    archives = Archives(directories)

    async def config(request: Request) -> Response:
        return json_response(
            overview.config(submit=False, cancel=False, rescale=False, history=True, refresh_ms=_REFRESH_MS)
        )

    async def jobs(request: Request) -> Response:
        return json_response({"jobs": await run_in_threadpool(archives.jobs)})

    async def ids(request: Request) -> Response:
        found = await run_in_threadpool(archives.jobs)
        return json_response({"jobs": [{"id": job["jid"], "status": job["state"]} for job in found]})

    async def totals(request: Request) -> Response:
        return json_response(_totals(await run_in_threadpool(archives.jobs)))

    async def applications(request: Request) -> Response:
        found = await run_in_threadpool(archives.jobs)
        return json_response({"applications": [overview.application_of(job) for job in found]})

    async def archived(request: Request) -> Response:
        path = request.scope["path"].removeprefix("/v1")
        return await run_in_threadpool(archives.answer, request.path_params["job_id"], path, request.query_params)

    async def healthy(request: Request) -> Response:
        return json_response({"status": "ok"})

    lists = {"/config": config, "/jobs/overview": jobs, "/jobs": ids, "/overview": totals}
    lists |= {"/applications/overview": applications, "/health/live": healthy, "/health/ready": healthy}
    routes: list[BaseRoute] = []
    for prefix in ("", "/v1"):
        routes += [Route(prefix + path, answer) for path, answer in lists.items()]
        for kind in ("jobs", "applications"):
            routes += [Route(f"{prefix}/{kind}/{{job_id}}{rest}", archived) for rest in ("", "/{rest:path}")]
    return Starlette(
        routes=[*routes, *dashboard_routes()],
        middleware=[Middleware(TrimmedPaths), Middleware(BrowserGuard, allowed_hosts=allowed_hosts)],
        exception_handlers={RestError: error_response, HTTPException: http_error, Exception: server_error},
    )


def _totals(jobs: list[Json]) -> Json:
    states = [job["state"] for job in jobs]
    return {
        "taskmanagers": 0,
        "slots-total": 0,
        "slots-available": 0,
        "jobs-running": 0,
        "jobs-finished": states.count("FINISHED"),
        "jobs-cancelled": states.count("CANCELED"),
        "jobs-failed": states.count("FAILED"),
        "flink-version": overview.FLINK_VERSION,
        "flink-commit": overview.COMMIT,
        "penstock-version": overview.PENSTOCK_VERSION,
    }
