"""The client of queryable state: it reads the state of one key of a job that runs in another process."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection
from typing import Any, NoReturn, Self

from penstock.common.completable_future import CompletableFuture
from penstock.common.errors import StateAccessError
from penstock.common.job_id import JobID
from penstock.common.typeinfo import TypeInformation
from penstock.core.functions import KeyedProcessFunction, RuntimeContext
from penstock.core.state import State, StateDescriptor, ValueStateDescriptor
from penstock.runtime.state.keyed_store import read_only_state

__all__ = ["LatestValue", "QueryableStateClient"]


class LatestValue(KeyedProcessFunction):
    """Keeps the latest record of each key for queries."""

    def __init__(self, queryable_state_name: str) -> None:
        self._name = queryable_state_name

    def open(self, runtime_context: RuntimeContext) -> None:
        descriptor = ValueStateDescriptor(self._name)
        descriptor.set_queryable(self._name)
        self._latest = runtime_context.get_state(descriptor)

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> None:
        self._latest.update(value)


class _FoundCell:
    """A value from the server; read-only."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def get(self) -> Any:
        """Return the value."""
        return self._value

    def put(self, value: Any) -> NoReturn:
        """Reject the write: queryable state is read-only."""
        raise StateAccessError("queryable state can only be read: the job itself writes it")

    def touch(self) -> NoReturn:
        """Reject the write: queryable state is read-only."""
        self.put(None)


class QueryableStateClient:
    """Queries a running job for the state of a key.

    Start the job with ``queryable-state.enable: true``. Answers come from its last completed checkpoint. On the same
    machine, the client finds the server's secret itself.
    """

    def __init__(self, remote_hostname: str, remote_port: int, secret: bytes | None = None) -> None:
        self._address = (remote_hostname, remote_port)
        self._secret = secret
        self._connection: Connection | None = None
        self._worker = ThreadPoolExecutor(1, "penstock-queries")

    def get_kv_state(
        self,
        job_id: JobID | str,
        queryable_state_name: str,
        key: Any,
        key_type_info: TypeInformation | None = None,
        state_descriptor: StateDescriptor | None = None,
        *,
        uid: str | None = None,
    ) -> CompletableFuture[State]:
        """Return a read-only state object with the state of the key.

        The name is that of ``set_queryable`` or ``as_queryable_state``. If you give the operator's ``uid``, it is the
        name of any keyed state of that operator. The descriptor determines the kind of state; its name is ignored.
        """
        if not isinstance(state_descriptor, StateDescriptor):
            raise StateAccessError("get_kv_state() needs a state descriptor, which tells the kind of state")
        try:
            asked = self._worker.submit(self._ask, str(job_id), queryable_state_name, key, uid, state_descriptor)
        except RuntimeError:
            raise StateAccessError("this client is shut down: create a new one") from None
        return CompletableFuture(asked)

    def _ask(self, job_id: str, name: str, key: Any, uid: str | None, descriptor: StateDescriptor) -> State:
        connection = self._connect()
        try:
            connection.send((job_id, name, key, uid))
            found, answer = connection.recv()
        except (EOFError, OSError) as error:
            self._connection = None
            raise StateAccessError(f"the queryable state server stopped responding ({error})") from None
        if not found:
            raise StateAccessError(answer)
        kind, value = answer
        state: State = read_only_state(name, descriptor, kind, value, _FoundCell)
        return state

    def _connect(self) -> Connection:
        if self._connection is None:
            secret = self._secret if self._secret is not None else _local_secret(self._address[1])
            try:
                self._connection = Client(self._address, "AF_INET", authkey=secret)
            except (OSError, EOFError, AuthenticationError) as error:
                host, port = self._address
                raise StateAccessError(f"no queryable state server answers on {host}:{port} ({error})") from None
        return self._connection

    def shutdown_and_wait(self) -> None:
        """Close the connection."""
        self._worker.shutdown()
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown_and_wait()


def _local_secret(port: int) -> bytes:
    from penstock.spark.query_server import secret_file

    try:
        return secret_file(port).read_bytes()
    except OSError:
        raise StateAccessError(
            f"no queryable state server of this user runs on port {port} of this machine. For another machine, pass "
            "the secret"
        ) from None
