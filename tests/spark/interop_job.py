"""A program to be killed: Spark's file source -> running counts in Penstock -> a sink of Spark's, exactly once.

python interop_job.py CHECKPOINT_DIRECTORY INPUT_DIRECTORY OUTPUT_DIRECTORY SINK ROWS RESULT_FILE

SINK is parquet or foreachBatch. When so many rows are there, they are written to the result file.
"""

import json
import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession

from penstock.common import Types
from penstock.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from penstock.datastream.state import ValueStateDescriptor
from penstock.spark.session import build_session

KEYS = 5


class Count(KeyedProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", default_value=0))

    def process_element(self, value, ctx):
        self.count.update(self.count.value() + 1)
        yield ctx.get_current_key(), self.count.value()


def main(checkpoint, source, target, sink, rows, result):
    spark = build_session(master="local[2]", app_name="interop")
    env = StreamExecutionEnvironment(spark=spark).set_parallelism(2)
    frame = spark.readStream.schema("n long").option("maxFilesPerTrigger", 1).json(source)
    typed = Types.TUPLE([Types.LONG(), Types.LONG()])
    counts = env.from_dataframe(frame).key_by(lambda row: row.n % KEYS).process(Count(), typed)
    writer = counts.to_dataframe("key long, number long").writeStream.option("checkpointLocation", checkpoint)
    if sink == "foreachBatch":

        def write(batch, batch_id):
            batch.write.mode("overwrite").parquet(f"{target}/batch={batch_id}")

        query = writer.foreachBatch(write).start()
    else:
        query = writer.format(sink).start(target)
    while True:
        found = read(spark, target, sink)
        if len(found) >= int(rows):
            break
        if query.exception() is not None:
            raise query.exception()
        time.sleep(0.2)
    query.stop()
    Path(result).write_text(json.dumps(read(spark, target, sink)))
    print("finished")  # noqa: T201


def read(spark: SparkSession, target, sink):
    """What a reader of Spark sees: the files that the sink's log knows."""
    if not any(Path(target).rglob("_SUCCESS" if sink == "foreachBatch" else "_spark_metadata/0")):
        return []
    frame = spark.read.schema("key long, number long").parquet(target)
    return sorted((row.key, row.number) for row in frame.collect())


if __name__ == "__main__":
    main(*sys.argv[1:])
