"""The State Processor API: read savepoints as data, create them from data, and change them.

It has Flink's names in snake_case. :class:`SavepointReader` reads a savepoint. :class:`SavepointWriter` writes one from
the results of :class:`OperatorTransformation`, which uses an iterable or a Spark DataFrame.
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
