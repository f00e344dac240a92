from datetime import timedelta

import pytest

from penstock.common import Configuration, Duration, RestartStrategies, RestartStrategyConfiguration
from penstock.common.errors import InvalidProgramError
from penstock.common.restart_strategy import _ExponentialDelayBackoff


def test_no_restart_gives_up_at_once():
    backoff = RestartStrategies.no_restart().create()
    backoff.notify_failure(0)
    assert not backoff.can_restart()


def test_fall_back_without_configuration_gives_up_at_once():
    assert not RestartStrategies.fall_back_restart().create().can_restart()


def test_fixed_delay_restarts_a_number_of_times():
    strategy = RestartStrategies.fixed_delay_restart(2, 500)
    backoff = strategy.create()
    decisions = []
    for now in (0, 10, 20):
        backoff.notify_failure(now)
        decisions.append((backoff.can_restart(), backoff.delay_ms()))
    assert decisions == [(True, 500), (True, 500), (False, 500)]
    assert strategy.get_restart_attempts() == 2
    assert strategy.get_delay_between_attempts_interval() == timedelta(milliseconds=500)


def test_each_job_counts_its_own_failures():
    strategy = RestartStrategies.fixed_delay_restart(1, 0)
    for _ in range(2):
        backoff = strategy.create()
        backoff.notify_failure(0)
        assert backoff.can_restart()


def test_failure_rate_counts_failures_within_the_interval():
    strategy = RestartStrategies.failure_rate_restart(2, Duration.of_seconds(10), 100)
    backoff = strategy.create()
    decisions = []
    for now in (0, 6_000, 12_000, 13_000):
        backoff.notify_failure(now)
        decisions.append(backoff.can_restart())
    assert decisions == [True, True, True, False]
    assert backoff.delay_ms() == 100
    assert strategy.get_max_failure_rate() == 2
    assert strategy.get_failure_interval() == timedelta(seconds=10)
    assert strategy.get_delay_between_attempts_interval() == timedelta(milliseconds=100)


def delays(strategy, times):
    backoff = strategy.create()
    result = []
    for now in times:
        backoff.notify_failure(now)
        assert backoff.can_restart()
        result.append(backoff.delay_ms())
    return result


def test_exponential_delay_grows_to_its_limit_and_resets_after_a_quiet_time():
    strategy = RestartStrategies.exponential_delay_restart(100, 500, 2.0, 10_000, jitter_factor=0)
    assert delays(strategy, [0, 200, 500, 1_000, 2_000, 20_000]) == [100, 200, 400, 500, 500, 100]


def test_exponential_delay_can_be_limited_to_failures_in_a_row():
    backoff = RestartStrategies.exponential_delay_restart(attempts_before_reset=1).create()
    backoff.notify_failure(0)
    assert backoff.can_restart()
    backoff.notify_failure(2_000)
    assert not backoff.can_restart()


def test_failures_while_a_restart_is_waited_for_are_one_failure():
    strategy = RestartStrategies.exponential_delay_restart(100, 1_000, 2.0, 5_000, 0, attempts_before_reset=1)
    assert delays(strategy, [0, 0, 40, 100]) == [100, 100, 60, 0]
    backoff = strategy.create()
    for now in (0, 100, 101):
        backoff.notify_failure(now)
    assert not backoff.can_restart()
    assert backoff.delay_ms() == 200


ALMOST_ONE = 1 - 2**-53


@pytest.mark.parametrize(
    ("random", "delays"), [(0.0, (1_000, 1_350)), (0.5, (1_000, 1_500)), (ALMOST_ONE, (1_100, 1_650))]
)
def test_exponential_delay_spreads_by_its_jitter_factor_but_never_below_the_first_wait(random, delays):
    backoff = _ExponentialDelayBackoff(RestartStrategies.exponential_delay_restart(), lambda: random)
    for now, delay in zip((0, 10_000), delays, strict=True):
        backoff.notify_failure(now)
        assert backoff.delay_ms() == delay


def test_jitter_is_taken_from_the_wait_before_it_is_limited():
    """With a limit of 7 ms and waits of 2, 4, 8 and 16 ms that vary by a quarter."""
    seen = {failures: set() for failures in range(1, 5)}
    for random in [step / 100 for step in range(100)]:
        strategy = RestartStrategies.exponential_delay_restart(2, 7, 2.0, 1_000_000, 0.25)
        backoff = _ExponentialDelayBackoff(strategy, lambda random=random: random)
        for failures, delays in seen.items():
            backoff.notify_failure(10 * failures)
            delays.add(backoff.delay_ms())
    assert seen == {1: {2}, 2: {3, 4, 5}, 3: {6, 7}, 4: {7}}


def test_exponential_delay_lasts_for_any_number_of_failures():
    backoff = RestartStrategies.exponential_delay_restart(1, 10, 10.0, 1_000_000, 1.0).create()
    for failures in range(400):
        backoff.notify_failure(100 * failures)
        assert 1 <= backoff.delay_ms() <= 10


@pytest.mark.parametrize(
    "make",
    [
        lambda: RestartStrategies.fixed_delay_restart(-1, 0),
        lambda: RestartStrategies.fixed_delay_restart(1, -1),
        lambda: RestartStrategies.failure_rate_restart(0, 1, 1),
        lambda: RestartStrategies.failure_rate_restart(1, -1, 1),
        lambda: RestartStrategies.exponential_delay_restart(0),
        lambda: RestartStrategies.exponential_delay_restart(10, 5),
        lambda: RestartStrategies.exponential_delay_restart(backoff_multiplier=0.5),
        lambda: RestartStrategies.exponential_delay_restart(jitter_factor=2.0),
    ],
)
def test_nonsense_is_refused(make):
    with pytest.raises(InvalidProgramError):
        make()


@pytest.mark.parametrize(
    ("settings", "description"),
    [
        ({"restart-strategy.type": "none"}, "Restart deactivated."),
        ({"restart-strategy.type": "off"}, "Restart deactivated."),
        (
            {"restart-strategy.type": "fixed-delay", "restart-strategy.fixed-delay.delay": "2 s"},
            "Restart with fixed delay (2000 ms). #1 restart attempts.",
        ),
        (
            {"restart-strategy.type": "fixeddelay", "restart-strategy.fixed-delay.attempts": "7"},
            "Restart with fixed delay (1000 ms). #7 restart attempts.",
        ),
        (
            {"restart-strategy": "failure-rate", "restart-strategy.failure-rate.max-failures-per-interval": "3"},
            "Failure rate restart with maximum of 3 failures within interval 60000 ms and fixed delay 1000 ms.",
        ),
        (
            {
                "restart-strategy.type": "exponential-delay",
                "restart-strategy.exponential-delay.initial-backoff": "10 ms",
                "restart-strategy.exponential-delay.backoff-multiplier": "2.0",
            },
            (
                "Restart with exponential delay: starting at 10 ms, increasing by 2.0, with maximum 60000 ms, "
                "reset after 3600000 ms, jitter 0.1."
            ),
        ),
    ],
)
def test_strategies_are_read_from_flinks_configuration_keys(settings, description):
    strategy = RestartStrategies.from_configuration(Configuration.from_dict(settings))
    assert isinstance(strategy, RestartStrategyConfiguration)
    assert str(strategy) == description


def test_configuration_without_a_strategy_gives_none_and_an_unknown_one_is_refused():
    assert RestartStrategies.from_configuration(Configuration()) is None
    with pytest.raises(InvalidProgramError, match="sometimes"):
        RestartStrategies.from_configuration(Configuration().set_string("restart-strategy.type", "sometimes"))


def test_without_a_choice_checkpointing_decides_as_in_flink():
    nothing = RestartStrategies.fall_back_restart()
    assert RestartStrategies.effective(nothing, checkpointing_enabled=False) == RestartStrategies.no_restart()
    default = RestartStrategies.effective(nothing, checkpointing_enabled=True)
    assert default == RestartStrategies.exponential_delay_restart(1_000, 60_000, 1.5, 3_600_000, 0.1)
    chosen = RestartStrategies.no_restart()
    assert RestartStrategies.effective(chosen, checkpointing_enabled=True) is chosen


def test_a_failure_right_at_the_end_of_the_quiet_time_begins_anew_and_one_before_does_not():
    strategy = RestartStrategies.exponential_delay_restart(100, 1_000, 2.0, 5_000, jitter_factor=0)
    # the quiet time begins when the job is running again: after the wait
    assert delays(strategy, [0, 5_099]) == [100, 200]
    assert delays(strategy, [0, 5_100]) == [100, 100]


def test_attempts_are_counted_anew_after_a_quiet_time():
    backoff = RestartStrategies.exponential_delay_restart(100, 1_000, 2.0, 5_000, 0, attempts_before_reset=1).create()
    decisions = []
    for now in (0, 10_000, 10_150):
        backoff.notify_failure(now)
        decisions.append(backoff.can_restart())
    assert decisions == [True, True, False]


@pytest.mark.parametrize(
    "make",
    [
        lambda: RestartStrategies.exponential_delay_restart(backoff_multiplier=1.0),
        lambda: RestartStrategies.failure_rate_restart(1, 0, 0),
    ],
)
def test_what_flink_refuses_is_refused(make):
    with pytest.raises(InvalidProgramError):
        make()


@pytest.mark.parametrize("name", ["fixed-delay", "failure-rate", "exponential-delay"])
def test_flinks_other_spelling_is_the_same_strategy(name):
    first, second = (
        RestartStrategies.from_configuration(Configuration().set_string("restart-strategy.type", spelling))
        for spelling in (name, name.replace("-", ""))
    )
    assert first.get_description() == second.get_description()


@pytest.mark.parametrize(
    "strategy",
    [
        lambda: RestartStrategies.fixed_delay_restart("3", 1),
        lambda: RestartStrategies.failure_rate_restart(1.5, 1, 1),
        lambda: RestartStrategies.exponential_delay_restart(backoff_multiplier="2"),
        lambda: RestartStrategies.exponential_delay_restart(attempts_before_reset=0),
        lambda: RestartStrategies.exponential_delay_restart(attempts_before_reset=-1),
    ],
    ids=["attempts", "rate", "multiplier", "no attempt", "fewer"],
)
def test_numbers_that_are_none_are_refused_when_the_strategy_is_made(strategy):
    with pytest.raises(InvalidProgramError, match="must"):
        strategy()
