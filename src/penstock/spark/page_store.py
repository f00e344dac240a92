"""Pages in Spark's state store: one ValueState, addressed by page.

Spark's grouping key is the channel, but state need not be read and written under that key: here the key is set to the
name of the page before each access. A MapState of pages would do the same with a second key, but opening one costs
twice as much, for every task and batch.

Writes are pipelined: requests are sent without waiting for their answers, which are checked together at the end.
"""

from __future__ import annotations

import pickle
import struct
import zlib
from typing import Any

import pyspark.sql.streaming.proto.StateMessage_pb2 as messages
from pyspark.sql.types import BinaryType, StructField, StructType

from penstock.common.errors import CheckpointError

PAGE_SCHEMA = StructType([StructField("blob", BinaryType())])
PAGES = "pages"
# Meanwhile, answers wait in the socket. Each takes about a kilobyte, and if it is full, both sides wait forever.
_MAX_PENDING = 64
_FINE = 0
_VERSION = 0
_HEAD = struct.Struct(">ii")
_LENGTH = struct.Struct(">i")
_CHECKSUM = struct.Struct(">I")


class SparkPageStore:
    """The pages of one channel, for one batch."""

    def __init__(self, client: Any, place: str) -> None:
        self._socket = client.sockfile
        self._place = place
        self._pending = 0

    def get(self, page_id: str) -> bytes | None:
        """Read a page."""
        self._address(page_id)
        self._request(messages.ValueStateCall(stateName=PAGES, get=messages.Get()))
        self._pending -= 1
        self.flush()
        value = self._answer().value
        return unsealed(bytes(pickle.loads(value)[0]), self._place, page_id) if value else None

    def put(self, page_id: str, blob: bytes) -> None:
        """Write a page."""
        self._address(page_id)
        update = messages.ValueStateUpdate(value=pickle.dumps((sealed(blob, self._place, page_id),), 5))
        self._request(messages.ValueStateCall(stateName=PAGES, valueStateUpdate=update))

    def remove(self, page_id: str) -> None:
        """Remove a page."""
        self._address(page_id)
        self._request(messages.ValueStateCall(stateName=PAGES, clear=messages.Clear()))

    def flush(self) -> None:
        """Wait until everything sent so far has been processed."""
        self._socket.flush()
        for _ in range(self._pending):
            self._answer()
        self._pending = 0

    def _address(self, page_id: str) -> None:
        if self._pending >= _MAX_PENDING:
            self.flush()
        key = messages.SetImplicitKey(key=pickle.dumps((page_id,), 5))
        self._send(
            messages.StateRequest(implicitGroupingKeyRequest=messages.ImplicitGroupingKeyRequest(setImplicitKey=key))
        )

    def _request(self, call: Any) -> None:
        self._send(messages.StateRequest(stateVariableRequest=messages.StateVariableRequest(valueStateCall=call)))

    def _send(self, request: Any) -> None:
        data = request.SerializeToString()
        self._socket.write(_HEAD.pack(_VERSION, len(data)))
        self._socket.write(data)
        self._pending += 1

    def _answer(self) -> Any:
        response = messages.StateResponse()
        response.ParseFromString(self._socket.read(*_LENGTH.unpack(self._socket.read(_LENGTH.size))))
        if response.statusCode != _FINE:
            raise RuntimeError(f"Spark's state store rejected a page: {response.errorMessage}")
        return response


def sealed(blob: bytes, place: str, page_id: str) -> bytes:
    """Return a page with its checksum, which also covers its place: the stage, the channel and its name."""
    return blob + _CHECKSUM.pack(zlib.crc32(blob, _seed(place, page_id)))


def unsealed(data: bytes, place: str, page_id: str) -> bytes:
    """Return a page without its checksum. Not every storage detects a changed file, and a wrong page must not be used.

    >>> unsealed(sealed(b"state", "1/0", "op/p0"), "1/0", "op/p0")
    b'state'
    """
    blob, checksum = data[: -_CHECKSUM.size], data[-_CHECKSUM.size :]
    # Earlier versions used the checksum of the page alone.
    if checksum not in {_CHECKSUM.pack(zlib.crc32(blob, seed)) for seed in (_seed(place, page_id), 0)}:
        raise CheckpointError(
            f"page '{page_id}' of the state in the checkpoint is damaged: it does not match its checksum. Start from a "
            "savepoint with an empty checkpoint directory"
        )
    return blob


def _seed(place: str, page_id: str) -> int:
    return zlib.crc32(f"{place} {page_id}".encode())
