"""`/penstock/...`: what Flink's API lacks: the state of one key, the contents of savepoints."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Any

from penstock.cluster.rest.responses import RestError
from penstock.common.errors import PenstockError, StateAccessError
from penstock.runtime.savepoint.manifest import read_manifest

if TYPE_CHECKING:
    from penstock.cluster.monitored_job import MonitoredJob
    from penstock.cluster.rest.jobs import Json

__all__ = ["key_from_text", "savepoint_contents", "shown", "state_of_key"]

_ANSWER_SECONDS = 30.0
_SHOWN_ELEMENTS = 1000


def key_from_text(text: str) -> Any:
    """A key as it is typed: JSON, or else the text itself. JSON has no tuples, and lists cannot be keys.

    >>> key_from_text("17"), key_from_text('"17"'), key_from_text("ann"), key_from_text('["ann", 3]')
    (17, '17', 'ann', ('ann', 3))
    """
    try:
        key = json.loads(text)
    except ValueError:
        return text
    return tuple(key) if isinstance(key, list) else key


def state_of_key(job: MonitoredJob, operator: str, state: str, key: str | None) -> Json:
    """`GET /penstock/jobs/:jobid/state/:operator/:state?key=K`: a value of a completed checkpoint."""
    if key is None:
        raise RestError(400, "The query parameter key is missing.")
    uid = next(
        (
            chained.operator_id
            for vertex in job.graph.vertices
            for chained in vertex.operators
            if operator in {chained.operator_id, chained.uid, chained.name}
        ),
        None,
    )
    if uid is None:
        raise RestError(404, f"The job has no operator {operator!r}: give its uid, its name or its id.")
    try:
        answer = job.life.queries.ask(state, key_from_text(key), uid).result(_ANSWER_SECONDS)
    except TimeoutError:
        raise RestError(503, f"No batch was committed within {_ANSWER_SECONDS:.0f} seconds: try again.") from None
    except StateAccessError as error:
        raise RestError(404, str(error)) from None
    return {
        "operator": operator,
        "state": state,
        "key": key,
        "found": answer.kind is not None,
        "kind": answer.kind,
        "value": shown(answer.value),
    }


def savepoint_contents(path: str | None) -> Json:
    """`GET /penstock/savepoint?path=P`: the operators of a savepoint, their states and the sizes of them."""
    if not path:
        raise RestError(400, "The query parameter path is missing.")
    try:
        manifest = read_manifest(path)
    except (PenstockError, OSError) as error:
        raise RestError(404, str(error)) from None
    return {
        "path": path,
        "job-id": manifest.job_id,
        "job-name": manifest.job_name,
        "checkpoint-id": manifest.checkpoint_id,
        "processing-time": manifest.processing_time,
        "drained": manifest.drained,
        "operators": [
            {
                "id": operator.operator_id,
                "uid": operator.uid,
                "name": operator.name,
                "parallelism": operator.parallelism,
                "maxParallelism": operator.max_parallelism,
                "keys": sum(file["keys"] for file in operator.keyed_files),
                "size": sum(file["size"] for file in (*operator.keyed_files, *operator.operator_files)),
                "keyed-states": [{"name": state["name"], "kind": state["kind"]} for state in operator.keyed_states],
                "operator-states": operator.operator_states,
            }
            for operator in manifest.operators.values()
        ],
    }


def shown(value: Any) -> Any:
    """A value of state as JSON: numbers, texts and collections as such, everything else as Python prints it.

    >>> (
    ...     shown({"ann": (1, 2.5)}),
    ...     shown(2**60),
    ...     shown(
    ...         {
    ...             1,
    ...         }
    ...     ),
    ...     shown(float("inf")),
    ... )
    ({'ann': [1, 2.5]}, '1152921504606846976', [1], 'inf')
    """
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return value if abs(value) < 2**53 else str(value)  # browsers round larger ones
    if isinstance(value, float):
        return value if value - value == 0 else str(value)
    if isinstance(value, dict):
        return {str(key): shown(each) for key, each in itertools.islice(value.items(), _SHOWN_ELEMENTS)}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [shown(each) for each in itertools.islice(value, _SHOWN_ELEMENTS)]
    return repr(value)
