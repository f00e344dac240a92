"""Nexmark in SQL: one table of events, views that tell their kinds apart, and the queries q0 to q22.

The same text runs on Penstock and on Flink. What Nexmark does with a function of its own (q14) is said with built-in
ones; Flink does not plan q6, and q13 needs a table to look up. `expected` is the text for DuckDB where the
query itself means nothing to it.
"""

from __future__ import annotations

from dataclasses import dataclass

PERSON, AUCTION, BID = range(3)
COLUMNS = (
    ("kind", "INT"),
    ("p_id", "BIGINT"),
    ("p_name", "STRING"),
    ("p_email", "STRING"),
    ("p_card", "STRING"),
    ("p_city", "STRING"),
    ("p_state", "STRING"),
    ("a_id", "BIGINT"),
    ("a_item", "STRING"),
    ("a_description", "STRING"),
    ("a_initial", "BIGINT"),
    ("a_reserve", "BIGINT"),
    ("a_expires", "TIMESTAMP(3)"),
    ("a_seller", "BIGINT"),
    ("a_category", "BIGINT"),
    ("b_auction", "BIGINT"),
    ("b_bidder", "BIGINT"),
    ("b_price", "BIGINT"),
    ("b_channel", "STRING"),
    ("b_url", "STRING"),
    ("date_time", "TIMESTAMP(3)"),
)
VIEWS = {
    "person": f"""
        SELECT p_id AS id, p_name AS name, p_email AS emailAddress, p_card AS creditCard, p_city AS city,
            p_state AS state, date_time
        FROM events WHERE kind = {PERSON}
    """,
    "auction": f"""
        SELECT a_id AS id, a_item AS itemName, a_description AS description, a_initial AS initialBid,
            a_reserve AS reserve, date_time, a_expires AS expires, a_seller AS seller, a_category AS category
        FROM events WHERE kind = {AUCTION}
    """,
    "bid": f"""
        SELECT b_auction AS auction, b_bidder AS bidder, b_price AS price, b_channel AS channel, b_url AS url, date_time
        FROM events WHERE kind = {BID}
    """,
}


@dataclass(slots=True, frozen=True)
class Query:
    """A query; the types of its columns, for the sink; its text for DuckDB, None if it cannot be compared."""

    text: str
    columns: str
    expected: str | None = ""
    connector: str = "blackhole"

    def reference(self) -> str | None:
        """The text for DuckDB."""
        return self.text if self.expected == "" else self.expected


_TUMBLE = "TABLE(TUMBLE(TABLE {}, DESCRIPTOR({}), INTERVAL '10' SECOND))"
_HOP = "TABLE(HOP(TABLE bid, DESCRIPTOR(date_time), INTERVAL '2' SECOND, INTERVAL '10' SECOND))"
_TUMBLED = "time_bucket(INTERVAL '10' SECOND, date_time)"
_RANKS = ("", "price < 10000", "price >= 10000 AND price < 1000000", "price >= 1000000")


def _counts(what: str) -> str:
    return ", ".join(f"COUNT({what})" + (f" FILTER (WHERE {rank})" if rank else "") for rank in _RANKS)


def _days(text: str) -> str:
    """DuckDB's word for DATE_FORMAT."""
    return text.replace("DATE_FORMAT", "strftime").replace("'yyyy-MM-dd'", "'%Y-%m-%d'").replace("'HH:mm'", "'%H:%M'")


_HOT = f"""
    SELECT auction, COUNT(*) AS num, window_start AS starttime, window_end AS endtime
    FROM {_HOP} GROUP BY auction, window_start, window_end
"""
_Q3 = """
    SELECT P.name, P.city, P.state, A.id FROM auction AS A INNER JOIN person AS P ON A.seller = P.id
    WHERE A.category = 10 AND (P.state = 'OR' OR P.state = 'ID' OR P.state = 'CA')
"""
_Q4 = """
    SELECT Q.category, AVG(Q.final) FROM (
        SELECT MAX(B.price) AS final, A.category FROM auction A, bid B
        WHERE A.id = B.auction AND B.date_time BETWEEN A.date_time AND A.expires
        GROUP BY A.id, A.category
    ) Q GROUP BY Q.category
"""
_Q9 = """
    SELECT id, itemName, description, initialBid, reserve, date_time, expires, seller, category, auction, bidder, price,
        bid_date_time
    FROM (
        SELECT A.*, B.auction, B.bidder, B.price, B.date_time AS bid_date_time,
            ROW_NUMBER() OVER (PARTITION BY A.id ORDER BY B.price DESC, B.date_time ASC) AS rownum
        FROM auction A, bid B WHERE A.id = B.auction AND B.date_time BETWEEN A.date_time AND A.expires
    ) WHERE rownum <= 1
"""
_Q10 = """
    SELECT auction, bidder, price, date_time, url, DATE_FORMAT(date_time, 'yyyy-MM-dd') AS dt,
        DATE_FORMAT(date_time, 'HH:mm') AS hm
    FROM bid
"""
_Q14 = """
    SELECT auction, bidder, 0.908 * price AS price,
        CASE
            WHEN HOUR(date_time) >= 8 AND HOUR(date_time) <= 18 THEN 'dayTime'
            WHEN HOUR(date_time) <= 6 OR HOUR(date_time) >= 20 THEN 'nightTime' ELSE 'otherTime'
        END AS bidTimeType,
        date_time, CHAR_LENGTH(url) - CHAR_LENGTH(REPLACE(url, 'c', '')) AS c_counts
    FROM bid WHERE 0.908 * price > 1000000 AND 0.908 * price < 50000000
"""
_Q15 = f"""
    SELECT DATE_FORMAT(date_time, 'yyyy-MM-dd') AS `day`, {_counts("*")}, {_counts("DISTINCT bidder")},
        {_counts("DISTINCT auction")}
    FROM bid GROUP BY DATE_FORMAT(date_time, 'yyyy-MM-dd')
"""
_Q16 = f"""
    SELECT channel, DATE_FORMAT(date_time, 'yyyy-MM-dd') AS `day`, MAX(DATE_FORMAT(date_time, 'HH:mm')) AS `minute`,
        {_counts("*")}, {_counts("DISTINCT bidder")}, {_counts("DISTINCT auction")}
    FROM bid GROUP BY channel, DATE_FORMAT(date_time, 'yyyy-MM-dd')
"""
_Q17 = f"""
    SELECT auction, DATE_FORMAT(date_time, 'yyyy-MM-dd') AS `day`, {_counts("*")},
        MIN(price) AS min_price, MAX(price) AS max_price, AVG(price) AS avg_price, SUM(price) AS sum_price
    FROM bid GROUP BY auction, DATE_FORMAT(date_time, 'yyyy-MM-dd')
"""
_Q18 = """
    SELECT auction, bidder, price, channel, url, date_time FROM (
        SELECT *, ROW_NUMBER() OVER (PARTITION BY bidder, auction ORDER BY date_time DESC) AS rank_number FROM bid
    ) WHERE rank_number <= 1
"""
_Q19 = """
    SELECT auction, bidder, price, channel, url, date_time, rank_number FROM (
        SELECT *, ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price DESC) AS rank_number FROM bid
    ) WHERE rank_number <= 10
"""
_Q21 = r"""
    SELECT auction, bidder, price, channel,
        CASE
            WHEN LOWER(channel) = 'apple' THEN '0' WHEN LOWER(channel) = 'google' THEN '1'
            WHEN LOWER(channel) = 'facebook' THEN '2' WHEN LOWER(channel) = 'baidu' THEN '3'
            ELSE REGEXP_EXTRACT(url, '(&|^)channel_id=([^&]*)', 2)
        END AS channel_id
    FROM bid
    WHERE REGEXP_EXTRACT(url, '(&|^)channel_id=([^&]*)', 2) IS NOT NULL
        OR LOWER(channel) IN ('apple', 'google', 'facebook', 'baidu')
"""
_BID_TYPES = "auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, date_time TIMESTAMP(3)"
_COUNTS = ", ".join(f"c{number} BIGINT" for number in range(4))
_DISTINCTS = ", ".join(f"d{number} BIGINT" for number in range(8))

QUERIES = {
    "q0": Query("SELECT auction, bidder, price, channel, url, date_time FROM bid", _BID_TYPES),
    "q1": Query(
        "SELECT auction, bidder, 0.908 * price AS price, date_time FROM bid",
        "auction BIGINT, bidder BIGINT, price DECIMAL(23, 3), date_time TIMESTAMP(3)",
    ),
    "q2": Query("SELECT auction, price FROM bid WHERE MOD(auction, 123) = 0", "auction BIGINT, price BIGINT"),
    "q3": Query(_Q3, "name STRING, city STRING, state STRING, id BIGINT"),
    "q4": Query(_Q4, "category BIGINT, final BIGINT", _Q4.replace("AVG(Q.final)", "SUM(Q.final) // COUNT(*)")),
    "q5": Query(
        f"""
        SELECT AuctionBids.auction, AuctionBids.num FROM ({_HOT}) AS AuctionBids JOIN (
            SELECT MAX(CountBids.num) AS maxn, CountBids.starttime, CountBids.endtime FROM ({_HOT}) AS CountBids
            GROUP BY CountBids.starttime, CountBids.endtime
        ) AS MaxBids
        ON AuctionBids.starttime = MaxBids.starttime AND AuctionBids.endtime = MaxBids.endtime
            AND AuctionBids.num >= MaxBids.maxn
        """,
        "auction BIGINT, num BIGINT",
        """
        SELECT auction, num FROM (
            SELECT auction, COUNT(*) AS num, last - back * INTERVAL '2' SECOND AS starts
            FROM (SELECT auction, time_bucket(INTERVAL '2' SECOND, date_time) AS last FROM bid), range(5) AS r(back)
            GROUP BY ALL
        ) QUALIFY num = MAX(num) OVER (PARTITION BY starts)
        """,
    ),
    "q7": Query(
        f"""
        SELECT B.auction, B.price, B.bidder, B.date_time FROM bid B JOIN (
            SELECT MAX(price) AS maxprice, window_end AS endtime FROM {_TUMBLE.format("bid", "date_time")}
            GROUP BY window_start, window_end
        ) B1 ON B.price = B1.maxprice
        WHERE B.date_time BETWEEN B1.endtime - INTERVAL '10' SECOND AND B1.endtime
        """,
        "auction BIGINT, price BIGINT, bidder BIGINT, date_time TIMESTAMP(3)",
        f"""
        SELECT B.auction, B.price, B.bidder, B.date_time FROM bid B JOIN (
            SELECT MAX(price) AS maxprice, {_TUMBLED} AS starttime FROM bid GROUP BY 2
        ) B1 ON B.price = B1.maxprice AND B.date_time BETWEEN starttime AND starttime + INTERVAL '10' SECOND
        """,
    ),
    "q8": Query(
        f"""
        SELECT P.id, P.name, P.starttime FROM (
            SELECT id, name, window_start AS starttime, window_end AS endtime
            FROM {_TUMBLE.format("person", "date_time")} GROUP BY id, name, window_start, window_end
        ) P JOIN (
            SELECT seller, window_start AS starttime, window_end AS endtime
            FROM {_TUMBLE.format("auction", "date_time")} GROUP BY seller, window_start, window_end
        ) A ON P.id = A.seller AND P.starttime = A.starttime AND P.endtime = A.endtime
        """,
        "id BIGINT, name STRING, stime TIMESTAMP(3)",
        f"""
        SELECT P.id, P.name, P.starttime FROM (SELECT DISTINCT id, name, {_TUMBLED} AS starttime FROM person) P
        JOIN (SELECT DISTINCT seller, {_TUMBLED} AS starttime FROM auction) A
            ON P.id = A.seller AND P.starttime = A.starttime
        """,
    ),
    "q9": Query(
        _Q9,
        "id BIGINT, itemName STRING, description STRING, initialBid BIGINT, reserve BIGINT, date_time TIMESTAMP(3), "
        "expires TIMESTAMP(3), seller BIGINT, category BIGINT, auction BIGINT, bidder BIGINT, price BIGINT, "
        "bid_date_time TIMESTAMP(3)",
    ),
    "q10": Query(
        _Q10,
        "auction BIGINT, bidder BIGINT, price BIGINT, date_time TIMESTAMP(3), url STRING, dt STRING, hm STRING",
        _days(_Q10),
        connector="filesystem",
    ),
    "q11": Query(
        "SELECT bidder, COUNT(*) AS bid_count, window_start AS starttime, window_end AS endtime FROM "
        "TABLE(SESSION(TABLE bid PARTITION BY bidder, DESCRIPTOR(date_time), INTERVAL '10' SECOND)) "
        "GROUP BY bidder, window_start, window_end",
        "bidder BIGINT, bid_count BIGINT, starttime TIMESTAMP(3), endtime TIMESTAMP(3)",
        """
        WITH marked AS (
            SELECT bidder, date_time, coalesce(date_time - lag(date_time) OVER (PARTITION BY bidder ORDER BY date_time)
                > INTERVAL '10' SECOND, TRUE) AS fresh FROM bid
        ), numbered AS (
            SELECT bidder, date_time, sum(fresh::INT) OVER (
                PARTITION BY bidder ORDER BY date_time RANGE UNBOUNDED PRECEDING
            ) AS session FROM marked
        )
        SELECT bidder, count(*), min(date_time), max(date_time) + INTERVAL '10' SECOND
        FROM numbered GROUP BY bidder, session
        """,
    ),
    "q12": Query(
        "SELECT bidder, COUNT(*) AS bid_count, window_start AS starttime, window_end AS endtime FROM "
        f"{_TUMBLE.format('bid_now', 'p_time')} GROUP BY bidder, window_start, window_end",
        "bidder BIGINT, bid_count BIGINT, starttime TIMESTAMP(3), endtime TIMESTAMP(3)",
        None,
    ),
    "q14": Query(
        _Q14,
        "auction BIGINT, bidder BIGINT, price DECIMAL(23, 3), bidTimeType STRING, date_time TIMESTAMP(3), "
        "c_counts BIGINT",
    ),
    "q15": Query(_Q15, f"`day` STRING, {_COUNTS}, {_DISTINCTS}", _days(_Q15)),
    "q16": Query(_Q16, f"channel STRING, `day` STRING, `minute` STRING, {_COUNTS}, {_DISTINCTS}", _days(_Q16)),
    "q17": Query(
        _Q17,
        f"auction BIGINT, `day` STRING, {_COUNTS}, min_price BIGINT, max_price BIGINT, avg_price BIGINT, "
        "sum_price BIGINT",
        _days(_Q17).replace("AVG(price)", "SUM(price) // COUNT(*)"),
    ),
    "q18": Query(_Q18, _BID_TYPES, None),
    "q19": Query(_Q19, f"{_BID_TYPES}, rank_number BIGINT", None),
    "q20": Query(
        "SELECT auction, bidder, price, channel, url, B.date_time AS bid_date_time, itemName, description, initialBid, "
        "reserve, A.date_time AS auction_date_time, expires, seller, category "
        "FROM bid AS B INNER JOIN auction AS A ON B.auction = A.id WHERE A.category = 10",
        "auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, bid_date_time TIMESTAMP(3), "
        "itemName STRING, description STRING, initialBid BIGINT, reserve BIGINT, auction_date_time TIMESTAMP(3), "
        "expires TIMESTAMP(3), seller BIGINT, category BIGINT",
    ),
    "q21": Query(
        _Q21,
        "auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, channel_id STRING",
    ),
    "q22": Query(
        "SELECT auction, bidder, price, channel, SPLIT_INDEX(url, '/', 3) AS dir1, SPLIT_INDEX(url, '/', 4) AS dir2, "
        "SPLIT_INDEX(url, '/', 5) AS dir3 FROM bid",
        "auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, dir1 STRING, dir2 STRING, dir3 STRING",
        "SELECT auction, bidder, price, channel, split_part(url, '/', 4), split_part(url, '/', 5), "
        "nullif(split_part(url, '/', 6), '') FROM bid",
    ),
}


def statements(path: str) -> list[str]:
    """The table of the events under a path, and the views."""
    columns = ",\n".join(f"`{name}` {type_}" for name, type_ in COLUMNS)
    events = (
        f"CREATE TABLE events ({columns}, WATERMARK FOR date_time AS date_time - INTERVAL '4' SECOND) "
        f"WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'parquet')"
    )
    views = [f"CREATE TEMPORARY VIEW {name} AS {text}" for name, text in VIEWS.items()]
    return [events, *views, "CREATE TEMPORARY VIEW bid_now AS SELECT *, PROCTIME() AS p_time FROM bid"]


def sink(query: str, path: str) -> str:
    """The table that takes the result of a query; only q10 writes files, under a path."""
    one = QUERIES[query]
    if one.connector == "filesystem":
        options = f"PARTITIONED BY (dt, hm) WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'csv')"
    else:
        options = f"WITH ('connector' = '{one.connector}')"
    return f"CREATE TABLE answer ({one.columns}) {options}"
