"""V shapes: the price of a stock falls for a while, then rises above the price it fell from.

Both slopes are loops with iterative conditions: each price is compared with the one before it. The rise is greedy, and
the price behind it ends it, so a V is reported once, at its full length. The search resumes at the last price of the
rise: it may be the top from which the next V falls.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cep_input import at, clock, environment, in_event_time

from penstock.cep import CEP, AfterMatchSkipStrategy, IterativeCondition, Match, Pattern
from penstock.datastream import DataStream


class Tick(NamedTuple):
    """The price of a stock at a time."""

    symbol: str
    time: int
    price: int


def ticks(symbol: str, *prices: int) -> list[Tick]:
    """A price a minute."""
    return [Tick(symbol, at("14:00:00") + 60_000 * minute, price) for minute, price in enumerate(prices)]


TICKS = sorted(
    [
        *ticks("ACME", 20, 18, 15, 13, 16, 21, 22, 19, 17, 23, 23, 23),  # two, which share the price 22
        *ticks("DOWN", 40, 38, 37, 33, 34, 36, 33, 31, 30, 30, 29, 28),  # recovers, but not to where it was
        *ticks("FLAT", 50, 50, 49, 49, 50, 50, 49, 51, 51, 50, 50, 50),  # one, of three prices
    ],
    key=lambda tick: tick.time,
)


def last_price(ctx: IterativeCondition.Context, *patterns: str) -> int:
    """The last price that the partial match has taken; of the patterns named, the first with an event counts."""
    taken = next(events for name in patterns if (events := ctx.get_events_for_pattern(name)))
    price: int = taken[-1].price
    return price


def above_the_top(tick: Tick, ctx: IterativeCondition.Context) -> bool:
    """Whether the rise that ends with this price has passed the top."""
    return last_price(ctx, "up") > last_price(ctx, "top")


def v_pattern() -> Pattern[Tick]:
    """A fall, then a rise to a price above the one before the fall, then a price that is not higher."""
    return (
        Pattern.begin("top", AfterMatchSkipStrategy.skip_to_last("up"))
        .next("down")
        .where(lambda tick, ctx: tick.price < last_price(ctx, "down", "top"))
        .one_or_more()
        .consecutive()
        .next("up")
        .where(lambda tick, ctx: tick.price > last_price(ctx, "up", "down"))
        .one_or_more()
        .consecutive()
        .greedy()
        .next("end")
        .where(lambda tick, ctx: tick.price <= last_price(ctx, "up"))
        .where(above_the_top)
    )


def shape(match: Match[Tick]) -> tuple[str, int, str]:
    """Symbol, begin and description of a V."""
    (top,) = match["top"]
    slopes = [" ".join(str(tick.price) for tick in match[name]) for name in ("down", "up")]
    return top.symbol, top.time, f"{top.price} \\ {slopes[0]} / {slopes[1]}"


def shapes(stream: DataStream) -> DataStream:
    """The V shapes in a stream of prices."""
    return CEP.pattern(stream.key_by(lambda tick: tick.symbol), v_pattern()).select(shape)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the job and prints the shapes, by symbol and time."""
    env = environment(__doc__, argv)
    print(f"Looking for: {v_pattern()}\n", flush=True)
    with shapes(in_event_time(env, TICKS)).execute_and_collect("V shapes") as found:
        for symbol, begin, prices in sorted(found):
            print(f"{symbol}  {clock(begin)}  {prices}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
