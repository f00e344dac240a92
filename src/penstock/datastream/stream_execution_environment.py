"""The environment: it creates streams and executes jobs.

This module imports what an execution needs: settings, graph and job clients.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self

from penstock.common.configuration import Configuration
from penstock.common.errors import InvalidProgramError, PenstockError, shorten
from penstock.common.interactive import show_errors_as_messages
from penstock.common.job_client import JobClient
from penstock.common.job_execution_result import JobExecutionResult
from penstock.common.typeinfo import TypeInformation
from penstock.datastream.environment_sources import EnvironmentSources
from penstock.datastream.execution_defaults import current_defaults, follow_plain_program
from penstock.datastream.pyflink_imports import imported_names
from penstock.graph.settings import JobSettings
from penstock.graph.transformation import SinkTransformation, Transformation
from penstock.graph.uids import check_uids

if TYPE_CHECKING:
    from penstock.datastream.cached import CachedDataStream

__all__ = ["Executor", "StreamExecutionEnvironment"]


class Executor(Protocol):
    """Runs jobs: Spark, or the in-process executor of ``penstock.testing``."""

    def submit(self, sinks: list[Transformation], settings: JobSettings) -> JobClient:
        """Start the job of these sinks and return while it runs."""


class StreamExecutionEnvironment(EnvironmentSources):
    """Creates streams, holds settings and runs jobs.

    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> env.set_parallelism(2).get_parallelism()
    2

    Jobs run on an embedded local Spark, or on the session passed as ``spark``.
    """

    def __init__(
        self,
        configuration: Configuration | None = None,
        *,
        executor: Executor | None = None,
        spark: Any = None,
    ) -> None:
        super().__init__()
        if executor is not None and spark is not None:
            raise InvalidProgramError("pass either an executor or a Spark session, not both")
        if executor is not None and (isinstance(executor, type) or not hasattr(executor, "submit")):
            raise InvalidProgramError(f"executor must be an object such as MiniCluster(), got {shorten(executor)}")
        defaults = self._defaults = current_defaults()
        self._executor = executor if defaults.executor is None else defaults.executor
        self._spark = spark
        self._runs_on_spark = False
        self._has_executed = False
        self.sinks: list[Transformation] = []
        self.caches: list[CachedDataStream] = []
        self.side_output_types: dict[tuple[int, str], TypeInformation | None] = {}
        self._job_listeners: list[Callable[[JobClient], None]] = list(defaults.job_listeners)
        self._submission_listeners = list(defaults.submission_listeners)
        self._next_job_callbacks: list[Callable[[JobClient], None]] = []
        self.configure(defaults.configuration)
        if configuration is not None:
            self.configure(configuration)
        show_errors_as_messages()

    @staticmethod
    def get_execution_environment(
        configuration: Configuration | None = None, spark: Any = None
    ) -> StreamExecutionEnvironment:
        """Create an environment."""
        return StreamExecutionEnvironment(configuration, spark=spark)

    @staticmethod
    def create_local_environment(
        parallelism: int | None = None, configuration: Configuration | None = None
    ) -> StreamExecutionEnvironment:
        """Create an environment that runs on this machine."""
        env = StreamExecutionEnvironment(configuration)
        return env if parallelism is None else env.set_parallelism(parallelism)

    # Execution

    def execute(self, job_name: str | None = None) -> JobExecutionResult:
        """Run the job and wait until it ends. Ctrl-C cancels it; a second Ctrl-C does not wait for the cancellation."""
        client = self.execute_async(job_name)
        try:
            return client.get_job_execution_result().result()
        except KeyboardInterrupt as interrupt:
            with contextlib.suppress(KeyboardInterrupt):
                client.cancel().result()
            raise interrupt.with_traceback(None) from None
        except PenstockError as error:
            # The engine's own frames do not help the reader; the message has the frames of the user's code.
            raise error.with_traceback(None) from None

    def execute_async(self, job_name: str | None = None) -> JobClient:
        """Start a job of all sinks added since the last execution, and return while it runs."""
        self.check_open()
        if not self.sinks:
            raise InvalidProgramError(
                "there is nothing to execute: add a sink (print(), sink_to(), ...) first. execute(), collect() and "
                "show() have already run the sinks that were added before them"
                if self._has_executed
                else "there is nothing to execute: add a sink (print(), sink_to(), execute_and_collect(), ...) first"
            )
        if not self.get_config().has_auto_generated_uids_enabled():
            check_uids(self.sinks)
        settings = self.job_settings(job_name)
        sinks = self.take_sinks()
        if self.caches:
            from penstock.datastream.cached import sinks_of_caches

            sinks += sinks_of_caches(self.caches, sinks, settings)
        for announce in self._submission_listeners:
            announce(settings.job_name)
        client = self._get_executor().submit(sinks, settings)
        self._has_executed = True
        callbacks, self._next_job_callbacks = self._next_job_callbacks, []
        for notify in [*callbacks, *self._job_listeners]:
            notify(client)
        if not self._defaults.by_command and self._runs_on_spark:
            follow_plain_program(client, settings.job_name)
        return client

    def get_execution_plan(self) -> str:
        """Return the job graph that would run now, as JSON."""
        from penstock.graph.plan import execution_plan_json

        self.check_open()
        if not self.sinks:
            raise InvalidProgramError("there is no job to plan: add a sink (print(), sink_to(), ...) first")
        return execution_plan_json(list(self.sinks), self.job_settings(None))

    def _repr_html_(self) -> str:
        """Return a picture of the job that execute() would run, for notebooks."""
        from penstock.datastream.notebook import environment_html

        return environment_html(self)

    def register_job_listener(self, job_listener: Callable[[JobClient], None]) -> None:
        """Call a function with the client of each submitted job."""
        self.check_open()
        self._job_listeners.append(job_listener)

    def close(self) -> None:
        """Close the environment. Later calls raise an error."""
        if not self._closed:
            self._closed = True
            self.take_sinks()
            close = getattr(self._executor, "close", None)
            if close is not None:
                close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        self.close()

    # Internals

    def _get_executor(self) -> Executor:
        if self._executor is None:
            from penstock.spark.executor import SparkExecutor

            self._executor = SparkExecutor(self._spark)
            self._runs_on_spark = True
        return self._executor

    def spark_session(self, settings: JobSettings) -> Any:
        """Return the user's Spark session, or the embedded one."""
        from penstock.spark.executor import embedded_session

        return self._spark if self._spark is not None else embedded_session(settings)

    def register_sink(self, sink: SinkTransformation) -> None:
        self.check_open()
        self.sinks.append(sink)
        self.note_default_parallelism(sink)
        self._defaults.waiting_sinks += 1

    def take_sinks(self) -> list[Transformation]:
        sinks, self.sinks = self.sinks, []
        self._defaults.waiting_sinks -= len(sinks)
        return sinks

    def on_next_job(self, callback: Callable[[JobClient], None]) -> None:
        self.check_open()
        self._next_job_callbacks.append(callback)


if not TYPE_CHECKING:
    __getattr__ = imported_names(__name__)
