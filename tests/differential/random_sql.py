"""Random SQL over two tables, with one right answer: no ties in an order, no late rows, no sums of floats.

Queries are texts that Flink and Penstock run alike. Results are what a changelog adds up to.
"""

from __future__ import annotations

import random

KEYS = ["a", "b", "c", "d"]
NULL = "n/a"
ORDERS = "id INT, k STRING, v INT, price DECIMAL(10, 2), ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND"
CLICKS = "id INT, k STRING, w INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND"


def tables(rng: random.Random, rows: int = 60) -> dict[str, tuple[str, str]]:
    """The columns and the CSV text of each table. Timestamps are unique and less than five seconds out of order."""
    orders, clicks = [], []
    for number in range(rows):
        second = 2 * number + rng.choice((0, 0, 0, -3))
        orders.append([number, key(rng), value(rng), f"{rng.randrange(-500, 5_000) / 100:.2f}", stamp(second, number)])
        clicks.append([number, key(rng), value(rng), stamp(2 * number + rng.choice((0, 0, -3)), number)])
    return {"orders": (ORDERS, text(orders)), "clicks": (CLICKS, text(clicks))}


def key(rng):
    return rng.choice([*KEYS, NULL])


def value(rng):
    return rng.choice([NULL, *range(-3, 10)])


def stamp(second, number):
    second = max(second, 0)
    return f"2024-01-01 10:{second // 60:02}:{second % 60:02}.{number:03}"


def text(rows):
    return "".join(",".join(map(str, row)) + "\n" for row in rows)


# -- expressions -------------------------------------------------------------------------------------------------------


def number(rng, name, depth=2):
    """An INT expression; `name` is an INT column."""
    if depth == 0 or rng.random() < 0.3:
        return rng.choice([name, "id", str(rng.randrange(-5, 6))])
    left, right = number(rng, name, depth - 1), number(rng, name, depth - 1)
    return rng.choice(
        [
            f"({left} + {right})",
            f"({left} - {right})",
            f"({left} * {right})",
            f"({left} / {rng.choice((2, 3, -4))})",
            f"MOD({left}, {rng.choice((2, 3, 5))})",
            f"ABS({left})",
            f"COALESCE({left}, {right})",
            f"NULLIF({left}, {right})",
            f"CASE WHEN {condition(rng, name, depth - 1)} THEN {left} ELSE {right} END",
            "CHAR_LENGTH(k)",
            f"CAST({word(rng, name, depth - 1)} = 'a' AS INT)",
            "CAST(EXTRACT(SECOND FROM ts) AS INT)",
        ]
    )


def word(rng, name, depth=1):
    """A STRING expression."""
    if depth == 0:
        return rng.choice(["k", f"'{rng.choice(KEYS)}'"])
    inner = word(rng, name, depth - 1)
    return rng.choice(
        [
            f"UPPER({inner})",
            f"({inner} || 'x')",
            f"COALESCE({inner}, 'none')",
            f"SUBSTRING({inner} || 'xyz', 2, 2)",
            f"CAST({number(rng, name, 0)} AS STRING)",
            f"REPLACE({inner}, 'a', 'zz')",
            f"LPAD({inner}, 3, '.')",
        ]
    )


def condition(rng, name, depth=1):
    """A predicate, perhaps NULL."""
    simple = rng.choice(
        [
            f"{number(rng, name, 1 if depth else 0)} {rng.choice(('<', '<=', '=', '<>', '>'))} {rng.randrange(-3, 9)}",
            f"{name} IS {rng.choice(('', 'NOT '))}NULL",
            f"k {rng.choice(('', 'NOT '))}IN ('a', 'b')",
            f"{name} {rng.choice(('', 'NOT '))}BETWEEN 0 AND 5",
            "k LIKE '%a%'",
            f"k IS NOT DISTINCT FROM '{rng.choice(KEYS)}'",
        ]
    )
    if depth == 0:
        return simple
    other = condition(rng, name, depth - 1)
    return rng.choice([simple, simple, f"({simple} AND {other})", f"({simple} OR {other})", f"NOT ({simple})"])


def aggregate(rng, name):
    column = rng.choice([name, name, "id"])
    filtered = f" FILTER (WHERE {condition(rng, name)})" if rng.random() < 0.2 else ""
    call = rng.choice(
        [
            "COUNT(*)",
            f"COUNT({column})",
            f"SUM({column})",
            f"MIN({column})",
            f"MAX({column})",
            f"AVG({column})",
            f"COUNT(DISTINCT {column})",
            f"SUM(DISTINCT {column})",
            "MAX(k)",
            "MIN(ts)",
        ]
    )
    return call + filtered


def aggregates(rng, name):
    return ", ".join(f"{aggregate(rng, name)} AS x{number}" for number in range(rng.randint(1, 3)))


# -- queries -----------------------------------------------------------------------------------------------------------


def source(rng):
    """A table, perhaps filtered, and its INT column."""
    table, name = rng.choice([("orders", "v"), ("clicks", "w")])
    return (table, name) if rng.random() < 0.6 else (f"(SELECT * FROM {table} WHERE {condition(rng, name)})", name)


def projection(rng):
    table, name = source(rng)
    where = f" WHERE {condition(rng, name)}" if rng.random() < 0.7 else ""
    distinct = "DISTINCT " if rng.random() < 0.2 else ""
    prices = ", price * 2 AS z, price + 1 AS u" if table == "orders" else ""
    return f"SELECT {distinct}{number(rng, name)} AS x, {word(rng, name)} AS y{prices} FROM {table}{where}"


def grouping(rng):
    table, name = source(rng)
    group = rng.choice(["k", "k", f"MOD({name}, 3)", f"k, MOD({name}, 2)"])
    having = rng.choice(["", "", " HAVING COUNT(*) > 3"])
    query = f"SELECT {group.replace(f'MOD({name}, 2)', f'MOD({name}, 2) AS m')}, {aggregates(rng, name)} FROM {table}"
    query += f" GROUP BY {group}{having}"
    if rng.random() < 0.2:
        return f"SELECT c, COUNT(*) FROM (SELECT k, COUNT(*) AS c FROM {table} GROUP BY k) GROUP BY c"
    return query


def join(rng):
    kind = rng.choice(["", "LEFT ", "RIGHT ", "FULL "])
    on = "o.k = c.k" + rng.choice(["", " AND o.v = c.w", " AND o.v < c.w", " AND o.id = c.id"])
    small = "(SELECT * FROM orders WHERE id < 25) AS o", "(SELECT * FROM clicks WHERE id < 25) AS c"
    joined = f"{small[0]} {kind}JOIN {small[1]} ON {on}"
    if rng.random() < 0.4:
        return f"SELECT o.k, COUNT(*), SUM(c.w), MAX(o.v) FROM {joined} GROUP BY o.k"
    return f"SELECT o.id, o.k, o.v, c.id, c.k, c.w FROM {joined}"


def subquery(rng):
    negated = rng.choice(["", "NOT "])
    test = condition(rng, "w")
    return rng.choice(
        [
            f"SELECT id, k FROM orders WHERE k {negated}IN (SELECT k FROM clicks WHERE {test} AND k IS NOT NULL)",
            f"SELECT id FROM orders AS o WHERE {negated}EXISTS (SELECT * FROM clicks AS c WHERE c.k = o.k AND c.w > 6)",
            f"SELECT id FROM orders WHERE v > (SELECT AVG(w) FROM clicks WHERE {test})",
        ]
    )


def interval_join(rng):
    kind = rng.choice(["", "LEFT ", "RIGHT ", "FULL "])
    return (
        f"SELECT o.id, c.id FROM orders AS o {kind}JOIN clicks AS c ON o.k = c.k AND o.ts BETWEEN "
        f"c.ts - INTERVAL '{rng.choice((3, 8))}' SECOND AND c.ts + INTERVAL '{rng.choice((2, 9))}' SECOND"
    )


def window(rng):
    table, name = rng.choice([("orders", "v"), ("clicks", "w")])
    function = rng.choice(
        [
            f"TUMBLE(TABLE {table}, DESCRIPTOR(ts), INTERVAL '10' SECOND)",
            f"HOP(TABLE {table}, DESCRIPTOR(ts), INTERVAL '5' SECOND, INTERVAL '20' SECOND)",
            f"CUMULATE(TABLE {table}, DESCRIPTOR(ts), INTERVAL '5' SECOND, INTERVAL '20' SECOND)",
            f"SESSION(TABLE {table} PARTITION BY k, DESCRIPTOR(ts), INTERVAL '7' SECOND)",
        ]
    )
    by = ", k" if function.startswith("SESSION") or rng.random() < 0.6 else ""
    bounds = "window_start, window_end"
    if not function.startswith("SESSION") and rng.random() < 0.25:
        ranked = f"ROW_NUMBER() OVER (PARTITION BY {bounds}{by} ORDER BY {name} DESC, id ASC) AS rn"
        return (
            f"SELECT {bounds}{by}, id, rn FROM (SELECT *, {ranked} FROM {function} WHERE {name} IS NOT NULL) "
            f"WHERE rn <= {rng.randint(1, 3)}"
        )
    return f"SELECT {bounds}{by}, {aggregates(rng, name)} FROM {function} GROUP BY {bounds}{by}"


def over(rng):
    table, name = rng.choice([("orders", "v"), ("clicks", "w")])
    frame = rng.choice(
        [
            "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
            f"ROWS BETWEEN {rng.randint(1, 4)} PRECEDING AND CURRENT ROW",
            "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
            f"RANGE BETWEEN INTERVAL '{rng.choice((4, 15))}' SECOND PRECEDING AND CURRENT ROW",
        ]
    )
    calls = ", ".join(
        f"{call} OVER w AS x{number}"
        for number, call in enumerate(
            rng.sample([f"SUM({name})", f"COUNT({name})", f"MAX({name})", f"MIN({name})", f"AVG({name})"], 2)
        )
    )
    by = rng.choice(["PARTITION BY k ", ""])
    return f"SELECT id, k, {calls} FROM {table} WINDOW w AS ({by}ORDER BY ts {frame})"


def top(rng):
    table, name = source(rng)
    order = rng.choice([f"{name} DESC, id ASC", f"{name} ASC, id DESC", "ts ASC", "ts DESC", "id DESC"])
    count = rng.choice((1, 1, 2, 3))
    rank = ", rn" if rng.random() < 0.5 else ""
    ranked = f"SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY {order}) AS rn FROM {table}"
    return f"SELECT id, k{rank} FROM ({ranked}) WHERE rn <= {count}"


def sets(rng):
    word_ = rng.choice(["UNION ALL", "UNION", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL"])
    return f"SELECT k, v FROM orders WHERE {condition(rng, 'v')} {word_} SELECT k, w FROM clicks"


KINDS = [projection, projection, grouping, grouping, join, subquery, interval_join, window, window, over, top, sets]


def queries(rng: random.Random, count: int) -> list[str]:
    """So many queries, all kinds in turn."""
    return [KINDS[number % len(KINDS)](rng) for number in range(count)]
