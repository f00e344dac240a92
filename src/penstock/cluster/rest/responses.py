"""Responses and errors in Flink's form."""

from __future__ import annotations

import json
import math
import re
import traceback
from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from penstock.cluster.redaction import redact_text

if TYPE_CHECKING:
    from starlette.requests import Request

__all__ = [
    "RestError",
    "bad_parameter",
    "error_response",
    "json_response",
    "not_a_number",
    "parse_id",
    "parse_number",
    "read_body",
    "server_error",
]

_ID = re.compile(r"[0-9a-f]{32}")


class RestError(Exception):
    """Raised for a request that fails, with the HTTP status and the message for the client."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def json_response(content: Any, status: int = 200) -> Response:
    """Return a JSON response. Convert NaN to text first (see :func:`not_a_number`)."""
    body = json.dumps(content, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    return Response(body, status, media_type="application/json; charset=UTF-8")


def not_a_number(value: float) -> float | str:
    """Return NaN as text, like Flink, because JSON has no NaN.

    >>> not_a_number(float("nan")), not_a_number(1.5)
    ('NaN', 1.5)
    """
    return "NaN" if math.isnan(value) else value


def error_response(request: Request, error: Exception) -> Response:
    """Return the response for an error of the client."""
    assert isinstance(error, RestError)
    response = json_response({"errors": [redact_text(str(error))]}, error.status)
    if error.status == 503:
        response.headers["Retry-After"] = "5"
    return response


def server_error(request: Request, error: Exception) -> Response:
    """Return the response for an internal error: the message and the traceback, as in Flink."""
    details = "".join(traceback.format_exception(error))
    texts = ["Internal server error.", f"<Exception on server side:\n{details}\nEnd of exception on server side>"]
    return json_response({"errors": [redact_text(text) for text in texts]}, 500)


def bad_parameter(kind: str, label: str, text: str) -> RestError:
    """Return Flink's error for an invalid path or query parameter."""
    return RestError(
        400, f'Bad request, could not parse parameters: Cannot resolve {kind} parameter ({label}) from value "{text}".'
    )


def parse_id(text: str, label: str) -> str:
    """Parse an id of 32 hexadecimal digits, in lower case."""
    if not _ID.fullmatch(text.lower()):
        raise bad_parameter("path", label, text)
    return text.lower()


def parse_number(text: str, label: str) -> int:
    """Parse a number in a path, such as the index of a subtask."""
    if not (text.isascii() and text.isdigit()):
        raise bad_parameter("path", label, text)
    return int(text)


async def read_body(request: Request) -> dict[str, Any]:
    """Parse the body as JSON. An empty one is `{}`."""
    raw = await request.body()
    if not raw:
        return {}
    try:
        body = json.loads(raw)
    except ValueError as error:
        raise RestError(400, f"Bad request received: the body is not JSON: {error}") from None
    if not isinstance(body, dict):
        raise RestError(400, "Bad request received: the body must be a JSON object")
    return body
