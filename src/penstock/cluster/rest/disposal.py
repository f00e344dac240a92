"""`/savepoint-disposal`: deletes savepoints of any job."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from penstock.cluster.rest.responses import RestError, json_response, parse_id, read_body
from penstock.common.completable_future import CompletableFuture
from penstock.common.errors import PenstockError, StateAccessError
from penstock.runtime.savepoint.manifest import read_manifest
from penstock.runtime.savepoint.storage import directory_at

if TYPE_CHECKING:
    from penstock.cluster.rest.operations import OperationStore

__all__ = ["disposal_routes"]

_SCOPE = "savepoint-disposal"


def disposal_routes(operations: OperationStore, user_of: Callable[[str], str | None]) -> list[BaseRoute]:
    """Return the endpoints. `user_of` returns the running job that still depends on a savepoint."""

    def begin(path: str) -> CompletableFuture[None]:
        try:
            read_manifest(path)  # raises an error if it is not a savepoint
            job = user_of(path)
            if job is not None:
                raise StateAccessError(
                    f"job {job} was restored from {path} and has completed no checkpoint since: wait for its next one"
                )
            directory_at(path).dispose()
        except (PenstockError, OSError) as error:
            return CompletableFuture.failed(error)
        return CompletableFuture.completed(None)

    async def dispose(request: Request) -> Response:
        body = await read_body(request)
        path = body.get("savepoint-path")
        if not path:
            raise RestError(400, "Field savepoint-path must not be omitted or be null.")
        chosen = body.get("triggerId")
        trigger_id = None if chosen is None else parse_id(str(chosen), "triggerId")
        trigger = await run_in_threadpool(operations.start, _SCOPE, trigger_id, lambda: begin(str(path)), lambda _: {})
        return json_response({"request-id": trigger})

    async def poll(request: Request) -> Response:
        return json_response(operations.poll(_SCOPE, parse_id(request.path_params["trigger_id"], "triggerid")))

    return [
        route
        for prefix in ("", "/v1")
        for route in (
            Route(f"{prefix}/{_SCOPE}", dispose, methods=["POST"]),
            Route(f"{prefix}/{_SCOPE}/{{trigger_id}}", poll),
        )
    ]
