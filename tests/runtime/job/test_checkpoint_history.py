"""What is kept of checkpoints, of which there may be ten a second."""

from penstock.runtime.job.checkpoint_statistics import CheckpointHistory, CheckpointStatistics


def filled(count, *, every_ms=100, failed=()):
    history = CheckpointHistory()
    for number in range(1, count + 1):
        end = number * every_ms
        failure = "bad record" if number in failed else None
        history.add(CheckpointStatistics(number, end - 10, end, 100, number, 2, failure=failure))
    return history


def test_o66_counts_and_sizes_cover_every_checkpoint():
    history = filled(5_000)
    assert (history.completed, history.written_size.count) == (5_000, 5_000)
    assert (history.written_size.minimum, history.written_size.maximum) == (1, 5_000)


def test_o66_the_history_has_the_last_ten_one_per_second_and_one_per_minute():
    history = filled(6_000)  # ten minutes
    assert [each.checkpoint_id for each in history.latest()] == list(range(6_000, 5_990, -1))
    ends = [each.completed for each in history.all()]
    assert len({end // 1_000 for end in ends if end >= 550_000}) == 51
    assert len({end // 60_000 for end in ends}) == 11
    assert len(ends) < 100


def test_o66_failures_and_savepoints_stay():
    history = filled(50, failed={7})
    history.savepoint_taken(50, "/savepoints/1")
    for number in range(51, 3_000):
        history.add(CheckpointStatistics(number, number * 100, number * 100, 100, 1, 2))
    kept = {each.checkpoint_id: each for each in history.all()}
    assert (kept[7].failure, kept[50].savepoint) == ("bad record", "/savepoints/1")
    assert history.find(50).savepoint == "/savepoints/1"
