"""Random changes and queries: what a streaming query adds up to is what SQLite says about the final tables."""

import random
import sqlite3

import pytest
from tests.table.conftest import Queries, table_environment
from tests.table.test_joins import changes

COMPARISONS = ["l.v < r.w", "l.v <> r.w", "l.v + r.w > 3", "l.k = r.w", "l.v = r.w", "r.w > 1", "l.v > 1"]


def random_changes(rng, table, steps):
    """Changes of a table with few keys and values, NULLs and equal rows; and the rows that remain."""
    log, live = [("+I", 0, 0, 0), ("-D", 0, 0, 0)], []

    def fresh():
        return (
            rng.choice([None, 0, 1, 2, 3]),
            rng.choice([None, 0, 1, 2]),
            rng.randrange(3),
        )

    for _ in range(steps):
        chosen = rng.random()
        if not live or chosen < 0.55:
            row = fresh()
            live.append(row)
            log.append(("+I", *row))
        elif chosen < 0.8:
            row = live.pop(rng.randrange(len(live)))
            log.append(("-D", *row))
        else:
            place = rng.randrange(len(live))
            log.append(("-U", *live[place]))
            live[place] = fresh()
            log.append(("+U", *live[place]))
    return log, live


def random_query(rng):
    extra = "".join(f" AND {one}" for one in rng.sample(COMPARISONS, rng.choice([0, 0, 1, 2])))
    equal = rng.choice(["l.k = r.k", "l.k = r.k AND l.n = r.n", "l.k IS NOT DISTINCT FROM r.k", "l.k + 1 = r.k"])
    on = equal + extra
    inner = extra.replace(" AND ", "", 1) or "TRUE"
    match rng.randrange(9):
        case 0:
            return f"SELECT l.k, l.v, r.k, r.w FROM l {rng.choice(['', 'LEFT', 'RIGHT', 'FULL'])} JOIN r ON {on}"
        case 1:
            return f"SELECT l.v, COUNT(*), SUM(r.w) FROM l {rng.choice(['', 'LEFT'])} JOIN r ON {on} GROUP BY l.v"
        case 2:
            return f"SELECT k, v FROM l WHERE {rng.choice(['', 'NOT '])}EXISTS (SELECT * FROM r WHERE {on})"
        case 3:
            return f"SELECT k, v FROM l WHERE k {rng.choice(['', 'NOT '])}IN (SELECT k FROM r WHERE {inner})"
        case 4:
            return "SELECT k, v, (SELECT COUNT(*) FROM r WHERE l.k = r.k AND r.w <> 1) FROM l"
        case 5:
            return f"SELECT k, n FROM l {rng.choice(['INTERSECT', 'EXCEPT', 'UNION'])} SELECT k, n FROM r"
        case 6:
            return f"SELECT l.v, r.w, m.v FROM l LEFT JOIN r ON {on} JOIN l AS m ON l.k = m.k"
        case 7:
            return f"SELECT l.v, r.w FROM l, r WHERE {on}"
    return "SELECT g.s, r.w FROM (SELECT k, SUM(n) AS s FROM l GROUP BY k) AS g FULL JOIN r ON g.k = r.k"


def expected_rows(tables, query):
    """What SQLite gives."""
    connection = sqlite3.connect(":memory:")
    for name, (columns, rows) in tables.items():
        connection.execute(f"CREATE TABLE {name} ({', '.join(columns)})")
        connection.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' for _ in columns)})", rows)
    rows = connection.execute(query).fetchall()
    connection.close()
    return sorted(rows, key=repr)


@pytest.mark.parametrize("seed", range(40))
def test_t70_t77_random_queries_give_what_sqlite_gives(seed):
    rng = random.Random(seed)
    cold, parallelism = rng.random() < 0.5, rng.choice([1, 1, 2])
    queries = Queries(table_environment(parallelism, max_records=rng.choice([1, 3, 7, 1_000]), cold=cold))
    tables = {}
    for name, value in (("l", "v"), ("r", "w")):
        log, live = random_changes(rng, name, rng.randrange(1, 25))
        columns = ["k", value, "n"]
        changes(queries, name, columns, *log)
        tables[name] = (columns, live)
    for _ in range(3):
        query = random_query(rng)
        assert queries.final(query) == expected_rows(tables, query), query
