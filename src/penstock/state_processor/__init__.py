"""The State Processor API: savepoints as data, to be read, made from data, and changed.

Flink's names in snake_case. A savepoint is read with :class:`SavepointReader`, and written with
:class:`SavepointWriter` from what :class:`OperatorTransformation` makes of an iterable or of a Spark DataFrame.
"""

from penstock.state_processor.bootstrap import OperatorTransformation
from penstock.state_processor.functions import (
    BroadcastStateBootstrapFunction,
    KeyedStateBootstrapFunction,
    KeyedStateReaderFunction,
    StateBootstrapFunction,
)
from penstock.state_processor.reader import SavepointReader
from penstock.state_processor.writer import SavepointWriter

__all__ = [
    "BroadcastStateBootstrapFunction",
    "KeyedStateBootstrapFunction",
    "KeyedStateReaderFunction",
    "OperatorTransformation",
    "SavepointReader",
    "SavepointWriter",
    "StateBootstrapFunction",
]
