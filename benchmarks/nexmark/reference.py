"""The same queries in SQL, over the same events: what the DataStream programs are checked against.

Event times are whole milliseconds and prices whole cents, so that results are equal to the last digit but for averages.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from benchmarks.nexmark import generator

_PERSON = ("id", "name", "email", "credit_card", "city", "state", "time")
_AUCTION = ("id", "item", "description", "initial_bid", "reserve", "time", "expires", "seller", "category")
_BID = ("auction", "bidder", "price", "channel", "url", "time")

# Closed auctions with their price. Event time comes to its end with the stream, so all auctions close.
_CLOSED = """
    closed AS (
        SELECT a.id, a.category, a.seller, a.expires, max(b.price) AS price
        FROM auction a JOIN bid b ON a.id = b.auction AND b.time BETWEEN a.time AND a.expires
        GROUP BY ALL
    )
"""

QUERIES = {
    "q0": "SELECT auction, bidder, price, channel, url, time FROM bid",
    "q1": "SELECT auction, bidder, price * 0.908::DOUBLE, time FROM bid",
    "q2": "SELECT auction, price FROM bid WHERE auction % 123 = 0",
    "q3": """
        SELECT p.name, p.city, p.state, a.id FROM auction a JOIN person p ON a.seller = p.id
        WHERE a.category = 10 AND p.state IN ('OR', 'ID', 'CA')
    """,
    "q4": f"""
        WITH {_CLOSED}
        SELECT DISTINCT category, expires, avg(price) OVER (
            PARTITION BY category ORDER BY expires RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) FROM closed
    """,
    "q5": """
        WITH counted AS (
            SELECT auction, slide * 2000 AS begins, count(*) AS bids
            FROM bid, generate_series(-5, (SELECT max(time) FROM bid) // 2000) AS windows(slide)
            WHERE slide * 2000 <= time AND time < slide * 2000 + 10000
            GROUP BY ALL
        )
        SELECT auction, begins, begins + 10000, bids FROM counted
        QUALIFY bids = max(bids) OVER (PARTITION BY begins)
    """,
    "q6": f"""
        WITH {_CLOSED}
        SELECT seller, id, avg(price) OVER (PARTITION BY seller ORDER BY expires, id ROWS 9 PRECEDING) FROM closed
    """,
    "q7": """
        WITH best AS (SELECT time // 10000 AS slot, max(price) AS price FROM bid GROUP BY ALL)
        SELECT b.auction, b.bidder, b.price, b.time
        FROM bid b JOIN best ON b.price = best.price AND b.time // 10000 = best.slot
    """,
    "q8": """
        SELECT DISTINCT p.id, p.name, p.time // 10000 * 10000
        FROM person p JOIN auction a ON p.id = a.seller AND p.time // 10000 = a.time // 10000
    """,
    "q11": """
        WITH marked AS (
            SELECT bidder, time, coalesce(
                time - lag(time) OVER (PARTITION BY bidder ORDER BY time) > 10000, TRUE
            ) AS fresh FROM bid
        ), numbered AS (
            SELECT bidder, time, sum(fresh::INT) OVER (
                PARTITION BY bidder ORDER BY time ROWS UNBOUNDED PRECEDING
            ) AS session FROM marked
        )
        SELECT bidder, min(time), max(time) + 10000, count(*) FROM numbered GROUP BY bidder, session
    """,
    # `arrived` is not part of the events: the runner of the query knows the processing time of each bid.
    "q12": """
        SELECT bidder, arrived // 10000 * 10000, arrived // 10000 * 10000 + 10000, count(*)
        FROM bid JOIN arrival USING (place) GROUP BY ALL
    """,
}


def tables(records: int, events_per_second: int) -> dict[str, Any]:
    """The first events as one table per kind; `place` is where each stands in the stream."""
    kinds = {
        "person": (_PERSON, generator.is_person, generator.person),
        "auction": (_AUCTION, generator.is_auction, generator.auction),
        "bid": (_BID, generator.is_bid, generator.bid),
    }
    result = {}
    for name, (columns, belongs, make) in kinds.items():
        rows = [(*make(place, events_per_second), place) for place in range(records) if belongs(place)]
        result[name] = pa.table(dict(zip((*columns, "place"), zip(*rows, strict=True), strict=True)))
    return result


def answer(query: str, data: dict[str, Any]) -> list[tuple[Any, ...]]:
    """The rows of a query over the tables."""
    import duckdb

    with duckdb.connect() as database:
        for name, table in data.items():
            database.register(name, table)
        return database.execute(QUERIES[query]).fetchall()
