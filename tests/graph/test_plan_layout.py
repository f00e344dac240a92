"""The picture of a plan: arrows cross neither labels nor boxes."""

from itertools import pairwise

from penstock.common import Time, WatermarkStrategy
from penstock.datastream import (
    CoMapFunction,
    KeyedBroadcastProcessFunction,
    OutputTag,
    ProcessFunction,
    StreamExecutionEnvironment,
)
from penstock.datastream.state import MapStateDescriptor
from penstock.datastream.window import TumblingEventTimeWindows
from penstock.graph.job_graph import translate
from penstock.graph.plan_layout import PlanLayout
from penstock.testing import MiniCluster


class Pass(ProcessFunction):
    def process_element(self, value, ctx):
        yield value


class Both(CoMapFunction):
    def map1(self, value):
        return value

    def map2(self, value):
        return value


class WithRules(KeyedBroadcastProcessFunction):
    def process_element(self, value, ctx):
        yield value

    def process_broadcast_element(self, value, ctx):
        pass


def large_job():
    """Side outputs, joins and unions over several stages, and sinks in between."""
    env = StreamExecutionEnvironment(executor=MiniCluster()).set_parallelism(4)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value: value)
    readings = env.from_sequence(1, 100).assign_timestamps_and_watermarks(strategy).rebalance().process(Pass())
    users, rules = env.from_sequence(1, 10), env.from_collection([1])
    late = readings.get_side_output(OutputTag("readings that came too late"))
    windows = readings.key_by(lambda value: value).window(TumblingEventTimeWindows.of(Time.seconds(1)))
    reduced = windows.reduce(lambda a, b: a)
    enriched = reduced.key_by(lambda value: value).connect(users.key_by(lambda value: value)).map(Both())
    checked = enriched.key_by(lambda value: value).connect(rules.broadcast(MapStateDescriptor("rules")))
    results = checked.process(WithRules()).union(late.shuffle().map(lambda value: value), users.shuffle())
    results.global_().map(lambda value: value).print()
    late.rebalance().print()
    reduced.global_().print()
    return translate(list(env.sinks), env.job_settings(None))


def level_segments(arrow):
    return [(x1, x2, y1) for (x1, y1), (x2, y2) in pairwise(arrow.points) if y1 == y2 and x1 < x2]


def test_arrows_bend_only_between_the_columns_where_no_label_is():
    layout = PlanLayout(large_job())
    strips = [(here.right, following.left - following.label_width) for here, following in pairwise(layout.columns)]
    for arrow in layout.arrows:
        for (x1, y1), (x2, y2) in pairwise(arrow.points):
            assert y1 == y2 or (x1, x2) in strips


def test_where_arrows_run_level_they_cross_no_label_and_no_box():
    layout = PlanLayout(large_job())
    arrows = list(layout.arrows)
    labels = [(arrow.label_left, arrow.points[-1][0], arrow.points[-1][1]) for arrow in arrows]
    for number, arrow in enumerate(arrows):
        for left, right, y in level_segments(arrow):
            for other, (label_left, label_right, base) in enumerate(labels):
                apart = right <= label_left or left >= label_right
                assert apart or number == other or not base - 14 < y < base + 3
            for box in layout.boxes.values():
                assert right <= box.left or left >= box.right or not box.top < y < box.top + box.height


def test_boxes_do_not_overlap_and_are_within_the_picture():
    layout = PlanLayout(large_job())
    boxes = sorted(layout.boxes.values(), key=lambda box: (box.left, box.top))
    for above, below in pairwise(boxes):
        assert above.left != below.left or above.top + above.height < below.top
    assert max(box.right for box in boxes) <= layout.width
    assert max(box.top + box.height for box in boxes) <= layout.height
