"""Restart strategies: how often a failed job restarts, and after which delay.

A *configuration* describes the strategy. :meth:`RestartStrategyConfiguration.create` creates a :class:`RestartBackoff`.
A supervisor notifies it of each failure and asks whether and when to restart.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from penstock.common.checks import is_int
from penstock.common.configuration import Configuration
from penstock.common.errors import InvalidProgramError
from penstock.common.time import Duration, Time, parse_duration, to_millis

__all__ = ["RestartBackoff", "RestartStrategies", "RestartStrategyConfiguration"]

Length = Duration | Time | timedelta | int

_LONGEST = 2.0**62


class RestartBackoff(ABC):
    """Decides about the restarts of one job.

    >>> backoff = RestartStrategies.fixed_delay_restart(1, 500).create()
    >>> backoff.notify_failure(now_ms=0)
    >>> backoff.can_restart(), backoff.delay_ms()
    (True, 500)
    >>> backoff.notify_failure(now_ms=10_000)
    >>> backoff.can_restart()
    False
    """

    @abstractmethod
    def notify_failure(self, now_ms: int) -> None:
        """Record a failure of the job at this time."""

    @abstractmethod
    def can_restart(self) -> bool:
        """Whether to restart the job after the last failure."""

    @abstractmethod
    def delay_ms(self) -> int:
        """Return the delay before the next restart."""


class RestartStrategyConfiguration(ABC):
    """Base class of all restart strategies."""

    @abstractmethod
    def get_description(self) -> str:
        """Return a description of the strategy."""

    @abstractmethod
    def create(self) -> RestartBackoff:
        """Create the backoff for one job."""

    def __str__(self) -> str:
        return self.get_description()


class _NoRestartBackoff(RestartBackoff):
    def notify_failure(self, now_ms: int) -> None:
        pass

    def can_restart(self) -> bool:
        return False

    def delay_ms(self) -> int:
        return 0


class _FixedDelayBackoff(RestartBackoff):
    def __init__(self, attempts: int, delay: int) -> None:
        self._attempts = attempts
        self._delay = delay
        self._failures = 0

    def notify_failure(self, now_ms: int) -> None:
        self._failures += 1

    def can_restart(self) -> bool:
        return self._failures <= self._attempts

    def delay_ms(self) -> int:
        return self._delay


class _FailureRateBackoff(RestartBackoff):
    def __init__(self, max_failures: int, interval: int, delay: int) -> None:
        self._max_failures = max_failures
        self._interval = interval
        self._delay = delay
        # The decision needs at most one more than the allowed number.
        self._failures: deque[int] = deque(maxlen=max_failures + 1)

    def notify_failure(self, now_ms: int) -> None:
        self._failures.append(now_ms)

    def can_restart(self) -> bool:
        failures = self._failures
        return len(failures) <= self._max_failures or failures[-1] - failures[0] > self._interval

    def delay_ms(self) -> int:
        return self._delay


class _ExponentialDelayBackoff(RestartBackoff):
    def __init__(
        self, config: _ExponentialDelayRestartStrategyConfiguration, jitter: Callable[[], float] = random.random
    ) -> None:
        self._config = config
        self._jitter = jitter
        self._attempts = 0
        self._delay = 0
        self._next_restart: int | None = None

    def notify_failure(self, now_ms: int) -> None:
        if self._next_restart is not None:
            quiet = now_ms - self._next_restart
            if quiet <= 0:  # another failure of the same attempt
                self._delay = -quiet
                return
            if quiet >= self._config.reset_backoff_threshold:
                self._attempts = 0
        self._delay = self._next_delay()
        self._next_restart = now_ms + self._delay
        self._attempts += 1

    def can_restart(self) -> bool:
        limit = self._config.attempts_before_reset
        return limit is None or self._attempts <= limit

    def delay_ms(self) -> int:
        return self._delay

    def _next_delay(self) -> int:
        """Return the next delay.

        Jitter applies before the limits: jobs that fail together restart at different times, but none too early.
        """
        config = self._config
        try:
            delay = int(min(config.initial_backoff * config.backoff_multiplier**self._attempts, _LONGEST))
        except OverflowError:
            delay = int(_LONGEST)
        spread = int(delay * config.jitter_factor)
        delay += int(self._jitter() * (2 * spread + 1)) - spread
        return max(config.initial_backoff, min(delay, config.max_backoff))


@dataclass(frozen=True)
class _NoRestartStrategyConfiguration(RestartStrategyConfiguration):
    """Ends the job at the first failure."""

    def get_description(self) -> str:
        return "Restart deactivated."

    def create(self) -> RestartBackoff:
        return _NoRestartBackoff()


@dataclass(frozen=True)
class _FallbackRestartStrategyConfiguration(RestartStrategyConfiguration):
    """Uses the strategy of the configuration (``restart-strategy.type``).

    Without one, it is Flink's default: exponential delay if checkpointing is enabled, otherwise no restart.
    """

    def get_description(self) -> str:
        return "Cluster level default restart strategy"

    def create(self) -> RestartBackoff:
        return _NoRestartBackoff()


class _FixedDelayRestartStrategyConfiguration(RestartStrategyConfiguration):
    """A fixed number of restarts, each after the same delay."""

    def __init__(self, restart_attempts: int, delay_between_attempts_interval: Length) -> None:
        self._restart_attempts = _not_negative(restart_attempts, "the number of restart attempts")
        self._delay = _not_negative(to_millis(delay_between_attempts_interval), "the delay between attempts")

    def get_restart_attempts(self) -> int:
        return self._restart_attempts

    def get_delay_between_attempts_interval(self) -> timedelta:
        return timedelta(milliseconds=self._delay)

    def get_description(self) -> str:
        return f"Restart with fixed delay ({self._delay} ms). #{self._restart_attempts} restart attempts."

    def create(self) -> RestartBackoff:
        return _FixedDelayBackoff(self._restart_attempts, self._delay)


class _FailureRateRestartStrategyConfiguration(RestartStrategyConfiguration):
    """Restarts until too many failures occur within an interval."""

    def __init__(
        self, max_failure_rate: int, failure_interval: Length, delay_between_attempts_interval: Length
    ) -> None:
        if _not_negative(max_failure_rate, "the failure rate") == 0:
            raise InvalidProgramError(f"the failure rate must be positive, got {max_failure_rate}")
        self._max_failure_rate = max_failure_rate
        self._failure_interval = to_millis(failure_interval)
        if self._failure_interval <= 0:
            raise InvalidProgramError(f"the failure interval must be positive, got {self._failure_interval} ms")
        self._delay = _not_negative(to_millis(delay_between_attempts_interval), "the delay between attempts")

    def get_max_failure_rate(self) -> int:
        return self._max_failure_rate

    def get_failure_interval(self) -> timedelta:
        return timedelta(milliseconds=self._failure_interval)

    def get_delay_between_attempts_interval(self) -> timedelta:
        return timedelta(milliseconds=self._delay)

    def get_description(self) -> str:
        return (
            f"Failure rate restart with maximum of {self._max_failure_rate} failures within interval "
            f"{self._failure_interval} ms and fixed delay {self._delay} ms."
        )

    def create(self) -> RestartBackoff:
        return _FailureRateBackoff(self._max_failure_rate, self._failure_interval, self._delay)


@dataclass(frozen=True)
class _ExponentialDelayRestartStrategyConfiguration(RestartStrategyConfiguration):
    """Restarts after increasing delays, which reset after a time without failures. Times are in ms."""

    initial_backoff: int = 1_000
    max_backoff: int = 60_000
    backoff_multiplier: float = 1.5
    reset_backoff_threshold: int = 3_600_000
    jitter_factor: float = 0.1
    attempts_before_reset: int | None = None

    def __post_init__(self) -> None:
        if self.initial_backoff < 1 or self.max_backoff < self.initial_backoff:
            raise InvalidProgramError(
                f"the initial delay must be at least 1 ms and not above the maximum, "
                f"got {self.initial_backoff} ms and {self.max_backoff} ms"
            )
        if not all(isinstance(number, (int, float)) for number in (self.backoff_multiplier, self.jitter_factor)):
            raise InvalidProgramError(
                "the multiplier and the jitter factor of exponential delay must be numbers, got "
                f"{self.backoff_multiplier!r} and {self.jitter_factor!r}"
            )
        attempts = self.attempts_before_reset
        if attempts is not None and _not_negative(attempts, "the number of attempts before a reset") == 0:
            raise InvalidProgramError("the number of attempts before a reset must be positive, or None for no limit")
        if self.backoff_multiplier <= 1 or not 0 <= self.jitter_factor <= 1 or self.reset_backoff_threshold < 1:
            raise InvalidProgramError(
                "exponential delay needs a multiplier > 1, a jitter factor from 0 to 1 and a reset threshold > 0, "
                f"got {self.backoff_multiplier}, {self.jitter_factor} and {self.reset_backoff_threshold} ms"
            )

    def get_description(self) -> str:
        return (
            f"Restart with exponential delay: starting at {self.initial_backoff} ms, increasing by "
            f"{self.backoff_multiplier}, with maximum {self.max_backoff} ms, reset after "
            f"{self.reset_backoff_threshold} ms, jitter {self.jitter_factor}."
        )

    def create(self) -> RestartBackoff:
        return _ExponentialDelayBackoff(self)


class RestartStrategies:
    """Creates restart strategies. Times are milliseconds, or a Duration, Time or timedelta.

    >>> RestartStrategies.fixed_delay_restart(3, 10_000).get_description()
    'Restart with fixed delay (10000 ms). #3 restart attempts.'
    """

    NoRestartStrategyConfiguration = _NoRestartStrategyConfiguration
    FallbackRestartStrategyConfiguration = _FallbackRestartStrategyConfiguration
    FixedDelayRestartStrategyConfiguration = _FixedDelayRestartStrategyConfiguration
    FailureRateRestartStrategyConfiguration = _FailureRateRestartStrategyConfiguration
    ExponentialDelayRestartStrategyConfiguration = _ExponentialDelayRestartStrategyConfiguration

    @staticmethod
    def no_restart() -> _NoRestartStrategyConfiguration:
        """End the job at the first failure."""
        return _NoRestartStrategyConfiguration()

    @staticmethod
    def fall_back_restart() -> _FallbackRestartStrategyConfiguration:
        """Use the strategy of the configuration."""
        return _FallbackRestartStrategyConfiguration()

    @staticmethod
    def fixed_delay_restart(
        restart_attempts: int, delay_between_attempts: Length
    ) -> _FixedDelayRestartStrategyConfiguration:
        """Restart a fixed number of times, each after the same delay."""
        return _FixedDelayRestartStrategyConfiguration(restart_attempts, delay_between_attempts)

    @staticmethod
    def failure_rate_restart(
        failure_rate: int, failure_interval: Length, delay_interval: Length
    ) -> _FailureRateRestartStrategyConfiguration:
        """Restart until there are more than ``failure_rate`` failures within an interval."""
        return _FailureRateRestartStrategyConfiguration(failure_rate, failure_interval, delay_interval)

    @staticmethod
    def exponential_delay_restart(
        initial_backoff: Length = 1_000,
        max_backoff: Length = 60_000,
        backoff_multiplier: float = 1.5,
        reset_backoff_threshold: Length = 3_600_000,
        jitter_factor: float = 0.1,
        attempts_before_reset: int | None = None,
    ) -> _ExponentialDelayRestartStrategyConfiguration:
        """Restart without limit (or a number of times in a row) after increasing delays."""
        return _ExponentialDelayRestartStrategyConfiguration(
            to_millis(initial_backoff),
            to_millis(max_backoff),
            backoff_multiplier,
            to_millis(reset_backoff_threshold),
            jitter_factor,
            attempts_before_reset,
        )

    @staticmethod
    def effective(
        configured: RestartStrategyConfiguration, *, checkpointing_enabled: bool
    ) -> RestartStrategyConfiguration:
        """Return the strategy that applies to a job: the configured one, or Flink's default.

        >>> RestartStrategies.effective(RestartStrategies.fall_back_restart(), checkpointing_enabled=False)
        _NoRestartStrategyConfiguration()
        """
        if not isinstance(configured, _FallbackRestartStrategyConfiguration):
            return configured
        return (
            RestartStrategies.exponential_delay_restart() if checkpointing_enabled else RestartStrategies.no_restart()
        )

    @staticmethod
    def from_configuration(configuration: Configuration) -> RestartStrategyConfiguration | None:
        """Return the strategy of the keys ``restart-strategy.*``, or ``None`` if they set none.

        >>> configuration = Configuration()
        >>> configuration = configuration.set_string("restart-strategy.type", "fixed-delay")
        >>> configuration = configuration.set_integer("restart-strategy.fixed-delay.attempts", 2)
        >>> RestartStrategies.from_configuration(configuration).get_restart_attempts()
        2
        """
        name = configuration.get_string("restart-strategy.type") or configuration.get_string("restart-strategy")
        if name is None:
            return None
        read = _from_configuration.get(name.strip().lower().replace("-", ""))  # Flink accepts both spellings
        if read is None:
            raise InvalidProgramError(
                f"unknown restart-strategy.type {name!r}: use none, fixed-delay, failure-rate or exponential-delay"
            )
        return read(configuration)


def _not_negative(value: int, label: str) -> int:
    if not is_int(value):
        raise InvalidProgramError(f"{label} must be an int, got {value!r}")
    if value < 0:
        raise InvalidProgramError(f"{label} must not be negative, got {value}")
    return value


def _length(configuration: Configuration, key: str, default: str) -> Duration:
    return parse_duration(configuration.get_string(f"restart-strategy.{key}", default))


def _fixed_delay(configuration: Configuration) -> RestartStrategyConfiguration:
    return RestartStrategies.fixed_delay_restart(
        configuration.get_integer("restart-strategy.fixed-delay.attempts", 1),
        _length(configuration, "fixed-delay.delay", "1 s"),
    )


def _failure_rate(configuration: Configuration) -> RestartStrategyConfiguration:
    return RestartStrategies.failure_rate_restart(
        configuration.get_integer("restart-strategy.failure-rate.max-failures-per-interval", 1),
        _length(configuration, "failure-rate.failure-rate-interval", "1 min"),
        _length(configuration, "failure-rate.delay", "1 s"),
    )


def _exponential_delay(configuration: Configuration) -> RestartStrategyConfiguration:
    prefix = "restart-strategy.exponential-delay."
    attempts = configuration.get_integer(prefix + "attempts-before-reset-backoff", 0)
    return RestartStrategies.exponential_delay_restart(
        _length(configuration, "exponential-delay.initial-backoff", "1 s"),
        _length(configuration, "exponential-delay.max-backoff", "1 min"),
        configuration.get_float(prefix + "backoff-multiplier", 1.5),
        _length(configuration, "exponential-delay.reset-backoff-threshold", "1 h"),
        configuration.get_float(prefix + "jitter-factor", 0.1),
        attempts or None,
    )


_from_configuration: dict[str, Callable[[Configuration], RestartStrategyConfiguration]] = {
    "none": lambda _: RestartStrategies.no_restart(),
    "off": lambda _: RestartStrategies.no_restart(),
    "disable": lambda _: RestartStrategies.no_restart(),
    "fixeddelay": _fixed_delay,
    "failurerate": _failure_rate,
    "exponentialdelay": _exponential_delay,
}
