"""Plan nodes that run Python over frames, built without pandas.

pyspark's public methods for them require pandas, although the variants used here never touch it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame, GroupedData
from pyspark.sql.streaming.stateful_processor import StatefulProcessor
from pyspark.sql.streaming.stateful_processor_util import TransformWithStateInPandasUdfUtils
from pyspark.sql.types import BinaryType, StringType, StructField, StructType
from pyspark.sql.udf import UserDefinedFunction
from pyspark.util import PythonEvalType

ROW_SCHEMA = StructType([StructField("channel", StringType(), False), StructField("frame", BinaryType(), False)])


def transform_with_state(grouped: GroupedData, processor: StatefulProcessor) -> DataFrame:
    """Return `groupBy(...).transformWithState(...)` in append mode without Spark's timers."""
    utils = TransformWithStateInPandasUdfUtils(processor, "None")
    udf = UserDefinedFunction(
        utils.transformWithStateUDF,
        returnType=ROW_SCHEMA,
        name="transformWithState",
        evalType=PythonEvalType.SQL_TRANSFORM_WITH_STATE_PYTHON_ROW_UDF,
    )
    frame = grouped._df
    column = udf(*[frame[name] for name in frame.columns])
    session = grouped.session
    schema = session._jsparkSession.parseDataType(ROW_SCHEMA.json())
    java_frame = grouped._jgd.transformWithStateInPySpark(column._jc, schema, "append", "None", None, "")
    return DataFrame(java_frame, session)


def map_in_arrow(
    frame: DataFrame,
    function: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]],
    schema: StructType = ROW_SCHEMA,
) -> DataFrame:
    """Return `DataFrame.mapInArrow`."""
    udf = UserDefinedFunction(
        function, returnType=schema, name="mapInArrow", evalType=PythonEvalType.SQL_MAP_ARROW_ITER_UDF
    )
    column = udf(*[frame[name] for name in frame.columns])
    return DataFrame(frame._jdf.mapInArrow(column._jc, False, None), frame.sparkSession)
