"""The programs of examples/cep: what they find on every executor, and what they print."""

import inspect
from pathlib import Path

import card_fraud
import failed_logins
import late_shipments
import overheating
import pytest
import v_shapes
from cep_input import at, in_event_time

from penstock.datastream import StreamExecutionEnvironment
from penstock.testing import MiniCluster
from penstock.testing.continuous_cluster import ContinuousCluster

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "cep"
PROGRAMS = [card_fraud, failed_logins, overheating, late_shipments, v_shapes]

PRINTED = {
    card_fraud: """\
Looking for: small -> large within 1 min

09:00:38  grace: $700.00, 8 s after $0.10
09:00:45  ada: $812.50, 45 s after $0.40
""",
    failed_logins: """\
Looking for: failed{3} consecutive within 5 min, skip past last event

mallory failed at 08:00:10, 08:00:15, 08:00:20
mallory failed at 08:00:25, 08:00:30, 08:00:35
grace failed at 08:04:00, 08:04:30, 08:05:00
""",
    overheating: """\
Looking for: first next rising{2} consecutive next hot, skip past last event

12:00:30  press is overheating: 60 61 65 71 °C
12:00:40  mixer is overheating: 29 33 39 47 °C
""",
    late_shipments: """\
Looking for: sent -> delivered within 2 d

in time:
  02 Jan 10:30  P1 delivered after 26.5 hours
  07 Jan 09:00  P4 delivered after 25.0 hours
late:
  03 Jan 09:00  P2 sent 01 Jan 09:00, not delivered
  04 Jan 12:00  P3 sent 02 Jan 12:00, not delivered
""",
    v_shapes: """\
Looking for: top next down+ consecutive next up+ consecutive greedy next end, skip to last 'up'

ACME  14:00:00  20 \\ 18 15 13 / 16 21 22
ACME  14:06:00  22 \\ 19 17 / 23
FLAT  14:05:00  50 \\ 49 / 51
""",
}


def name_of(program):
    return program.__name__


@pytest.mark.parametrize("program", PROGRAMS, ids=name_of)
@pytest.mark.parametrize(
    "cluster",
    [MiniCluster(), MiniCluster(max_records=1, cold=True), ContinuousCluster(max_records=1)],
    ids=["one batch", "many", "continuous"],
)
def test_what_a_program_prints(program, cluster, monkeypatch, capsys):
    monkeypatch.setattr(
        StreamExecutionEnvironment,
        "get_execution_environment",
        staticmethod(lambda: StreamExecutionEnvironment(executor=cluster)),
    )
    assert program.main(["--parallelism", "3"]) == 0
    assert capsys.readouterr().out == PRINTED[program]


@pytest.mark.parametrize("program", PROGRAMS, ids=name_of)
def test_help_says_what_a_program_shows(program, capsys):
    with pytest.raises(SystemExit, match="0"):
        program.main(["--help"])
    assert program.__doc__.strip() in capsys.readouterr().out


def test_the_readme_names_every_program():
    readme = (FOLDER.parent / "README.md").read_text(encoding="utf-8")
    assert [path.name for path in FOLDER.glob("*.py") if f"(cep/{path.name})" not in readme] == []


PATTERN_OF = {
    card_fraud: card_fraud.fraud_pattern,
    failed_logins: failed_logins.failures_pattern,
    overheating: overheating.heat_pattern,
    late_shipments: late_shipments.delivery_pattern,
    v_shapes: v_shapes.v_pattern,
}


@pytest.mark.parametrize("program", PROGRAMS, ids=name_of)
def test_the_guide_shows_the_pattern_its_picture_and_what_the_program_prints(program):
    page = (FOLDER.parents[1] / "docs" / "pattern-examples.md").read_text(encoding="utf-8")
    assert f"```python\n{inspect.getsource(PATTERN_OF[program])}```" in page
    assert f"(pictures/cep-{program.__name__.replace('_', '-')}.svg)" in page
    assert f"```text\n{PRINTED[program]}```" in page


# -- the patterns at their limits --------------------------------------------------------------------------------------


def texts(define, env, events):
    in_order = sorted(events, key=lambda event: event.time)
    return [found[-1] for found in define(in_event_time(env, in_order)).execute_and_collect()]


@pytest.mark.parametrize(("seconds", "alerts"), [(59, 1), (60, 0)])
def test_card_fraud_the_large_charge_comes_in_less_than_a_minute(env_factory, seconds, alerts):
    begin = at("09:00:00")
    charges = [card_fraud.Charge("x", begin, 0.5), card_fraud.Charge("x", begin + 1000 * seconds, 501.0)]
    assert len(texts(card_fraud.alerts, env_factory(), charges)) == alerts


def test_card_fraud_charges_of_different_cards_do_not_match(env_factory):
    charges = [card_fraud.Charge("x", at("09:00:00"), 0.5), card_fraud.Charge("y", at("09:00:01"), 501.0)]
    assert texts(card_fraud.alerts, env_factory(), charges) == []


def test_failed_logins_five_failures_are_one_alert(env_factory):
    logins = failed_logins.attempts("x", {f"08:00:0{second}": "wrong" for second in range(5)})
    found = texts(failed_logins.alerts, env_factory(), logins)
    assert found == ["x failed at 08:00:00, 08:00:01, 08:00:02"]


def test_overheating_exactly_ten_degrees_are_not_enough(env_factory):
    readings = [*overheating.readings("x", 10, 12, 14, 20), *overheating.readings("y", 10, 12, 14, 20.5)]
    found = texts(overheating.alerts, env_factory(), readings)
    assert found == ["y is overheating: 10 12 14 20 °C"]


def test_v_shapes_a_price_that_stands_still_is_no_slope(env_factory):
    ticks = [*v_shapes.ticks("X", 9, 8, 8, 10, 1), *v_shapes.ticks("Y", 9, 8, 7, 10, 10)]
    assert texts(v_shapes.shapes, env_factory(), ticks) == ["9 \\ 8 7 / 10"]
