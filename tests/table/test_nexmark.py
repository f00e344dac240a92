"""Nexmark's queries of windows, ranks and aggregates, beside results in plain Python."""

import datetime as dt
from collections import Counter

import pytest
from tests.table.conftest import Queries, table_environment, timed

from penstock.connectors.sinks import CollectSink
from penstock.datastream import StreamExecutionEnvironment
from penstock.table import StreamTableEnvironment
from penstock.testing import ManualClock, MiniCluster

START = dt.datetime(2024, 5, 1, 23, 59, 30)
CHANNELS = ("Apple", "Google", "Baidu")


def _bid(i):
    """auction, bidder, price, channel, dateTime"""
    return (
        i * 7 % 13,
        i * 5 % 17 + i % 3,
        i * 7919 % 10_007,
        CHANNELS[i % 3],
        START + dt.timedelta(milliseconds=250 * i),
    )


BIDS = [_bid(i) for i in range(240)]
HOP = "TABLE(HOP(TABLE bid, DESCRIPTOR(dateTime), INTERVAL '2' SECOND, INTERVAL '10' SECOND))"
HOT = (
    "SELECT auction, COUNT(*) AS num, window_start AS starttime, window_end AS endtime "
    f"FROM {HOP} GROUP BY auction, window_start, window_end"
)


def bids(queries, rows=BIDS):
    timed(queries, "bids", ["auction", "bidder", "price", "channel"], *rows, delay=4)
    view = "SELECT auction, bidder, price, channel, ts AS dateTime FROM bids"
    queries.t_env.create_temporary_view("bid", queries.t_env.sql_query(view))
    return queries


@pytest.fixture
def nexmark():
    return bids(Queries(table_environment(2)))


def test_q5_hot_items(nexmark):
    query = (
        f"SELECT A.auction, A.num, A.endtime FROM ({HOT}) AS A JOIN (SELECT MAX(C.num) AS maxn, C.starttime, C.endtime "
        f"FROM ({HOT}) AS C GROUP BY C.starttime, C.endtime) AS M "
        "ON A.starttime = M.starttime AND A.endtime = M.endtime AND A.num >= M.maxn"
    )
    counts = Counter()
    for auction, _, _, _, time in BIDS:
        first = START.replace(second=0) + dt.timedelta(
            seconds=(time - START.replace(second=0)).total_seconds() // 2 * 2
        )
        for copy in range(5):
            counts[first + dt.timedelta(seconds=10 - 2 * copy), auction] += 1
    best = Counter()
    for (end, _), count in counts.items():
        best[end] = max(best[end], count)
    expected = [(auction, count, end) for (end, auction), count in counts.items() if count == best[end]]
    assert nexmark.final(query) == sorted(expected, key=repr)


def test_q7_highest_bid(nexmark):
    query = (
        "SELECT B.auction, B.price, B.bidder, B.dateTime FROM bid B JOIN (SELECT MAX(price) AS maxprice, window_end AS "
        "dateTime FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(dateTime), INTERVAL '10' SECOND)) GROUP BY window_start, "
        "window_end) B1 ON B.price = B1.maxprice WHERE B.dateTime BETWEEN B1.dateTime - INTERVAL '10' SECOND AND "
        "B1.dateTime"
    )
    windows = {}
    for bid in BIDS:
        windows.setdefault((bid[4] - START).total_seconds() // 10, []).append(bid)
    best = [max(some, key=lambda bid: bid[2]) for some in windows.values()]
    expected = [(auction, price, bidder, time) for auction, bidder, price, _, time in best]
    assert nexmark.final(query) == sorted(expected, key=repr)


def test_q11_user_sessions(nexmark):
    session = "(B.dateTime, INTERVAL '1' SECOND)"
    query = (
        f"SELECT B.bidder, COUNT(*), SESSION_START{session}, SESSION_END{session} FROM bid B "
        f"GROUP BY B.bidder, SESSION{session}"
    )
    sessions = {}
    second = dt.timedelta(seconds=1)
    for _, bidder, _, _, time in BIDS:
        mine = sessions.setdefault(bidder, [])
        if mine and time <= mine[-1][2]:
            mine[-1] = (mine[-1][0] + 1, mine[-1][1], time + second)
        else:
            mine.append((1, time, time + second))
    expected = [(bidder, *one) for bidder, some in sessions.items() for one in some]
    assert sorted(nexmark.rows(query)) == sorted(expected)


def test_q12_processing_time_windows():
    clock = ManualClock(int(START.replace(tzinfo=dt.UTC).timestamp() * 1000))
    cluster = MiniCluster(clock=clock, max_records=100)
    env = StreamExecutionEnvironment(executor=cluster)
    queries = Queries(StreamTableEnvironment.create(env))
    queries.t_env.get_config().set("table.local-time-zone", "UTC")
    bids(queries)
    view = queries.t_env.sql_query("SELECT *, PROCTIME() AS p_time FROM bid")
    queries.t_env.create_temporary_view("B", view)
    query = (
        "SELECT bidder, COUNT(*) AS bid_count, window_start, window_end FROM TABLE(TUMBLE(TABLE B, DESCRIPTOR(p_time), "
        "INTERVAL '10' SECOND)) GROUP BY bidder, window_start, window_end"
    )
    sink = CollectSink()
    queries.t_env.to_changelog_stream(queries.t_env.sql_query(query)).sink_to(sink)
    job = cluster.start(list(env.sinks), env.job_settings(None))
    job.run_batch()
    clock.advance(10_000)
    job.run_batch()
    window = (START, START + dt.timedelta(seconds=10))
    counts = Counter(bid[1] for bid in BIDS[:100])
    rows = [tuple(row) for row in sink.records.get_nowait()]
    assert sorted(rows) == sorted((bidder, count, *window) for bidder, count in counts.items())


def test_q16_channel_statistics(nexmark):
    query = (
        "SELECT channel, DATE_FORMAT(dateTime, 'yyyy-MM-dd') AS `day`, MAX(DATE_FORMAT(dateTime, 'HH:mm')) AS m, "
        "COUNT(*) AS total, COUNT(*) FILTER (WHERE price < 3000) AS low, COUNT(DISTINCT bidder) AS bidders, "
        "COUNT(DISTINCT bidder) FILTER (WHERE price >= 3000) AS high_bidders, COUNT(DISTINCT auction) AS auctions "
        "FROM bid GROUP BY channel, DATE_FORMAT(dateTime, 'yyyy-MM-dd')"
    )
    groups = {}
    for bid in BIDS:
        groups.setdefault((bid[3], bid[4].strftime("%Y-%m-%d")), []).append(bid)
    expected = [
        (
            *key,
            max(bid[4].strftime("%H:%M") for bid in some),
            len(some),
            sum(bid[2] < 3000 for bid in some),
            len({bid[1] for bid in some}),
            len({bid[1] for bid in some if bid[2] >= 3000}),
            len({bid[0] for bid in some}),
        )
        for key, some in groups.items()
    ]
    assert nexmark.final(query) == sorted(expected, key=repr)


def test_q17_auction_statistics(nexmark):
    query = (
        "SELECT auction, DATE_FORMAT(dateTime, 'yyyy-MM-dd') AS `day`, COUNT(*) AS total, "
        "COUNT(*) FILTER (WHERE price < 3000) AS low, MIN(price), MAX(price), AVG(price), SUM(price) "
        "FROM bid GROUP BY auction, DATE_FORMAT(dateTime, 'yyyy-MM-dd')"
    )
    groups = {}
    for bid in BIDS:
        groups.setdefault((bid[0], bid[4].strftime("%Y-%m-%d")), []).append(bid[2])
    expected = [
        (*key, len(some), sum(p < 3000 for p in some), min(some), max(some), sum(some) // len(some), sum(some))
        for key, some in groups.items()
    ]
    assert nexmark.final(query) == sorted(expected, key=repr)


LAST_BIDS = (
    "SELECT auction, bidder, price, channel, dateTime FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY bidder, auction "
    "ORDER BY dateTime DESC) AS rank_number FROM bid) WHERE rank_number <= 1"
)


def test_q18_last_bid(nexmark):
    last = {(auction, bidder): bid for bid in BIDS for auction, bidder, *_ in [bid]}
    assert nexmark.final(LAST_BIDS) == sorted(last.values(), key=repr)


def test_q19_top_bids_of_each_auction(nexmark):
    query = (
        "SELECT auction, price, rank_number FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price "
        "DESC) AS rank_number FROM bid) WHERE rank_number <= 10"
    )
    expected = []
    for auction in {bid[0] for bid in BIDS}:
        prices = sorted((bid[2] for bid in BIDS if bid[0] == auction), reverse=True)[:10]
        expected += [(auction, price, rank) for rank, price in enumerate(prices, 1)]
    assert nexmark.final(query) == sorted(expected, key=repr)


@pytest.mark.variants(modes=("STREAMING",))
@pytest.mark.on_spark((2, "STREAMING"))
def test_hot_items_and_top_bids_on_every_executor(env_factory):
    queries = bids(Queries(StreamTableEnvironment.create(env_factory())), BIDS[:30])
    queries.t_env.get_config().set("table.local-time-zone", "UTC")
    query = (
        f"SELECT auction, num, endtime FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY starttime, endtime ORDER BY num "
        f"DESC, auction) AS rn FROM ({HOT})) WHERE rn <= 2"
    )
    reference = bids(Queries(table_environment()), BIDS[:30])
    assert queries.final(query) == reference.final(query)
