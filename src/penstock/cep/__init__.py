"""Complex event processing: finds sequences of events, like Flink's Java CEP library.

>>> from penstock.cep import Pattern
>>> print(Pattern.begin("login").one_or_more().followed_by("transfer").within(60_000))
login+ -> transfer within 1 min
"""

from penstock.cep.pattern import GroupPattern, Pattern
from penstock.cep.pattern_stream import CEP, EventComparator, PatternStream
from penstock.cep.quantifier import ConsumingStrategy, Quantifier, QuantifierProperty, Times, WithinType
from penstock.common.errors import MalformedPatternError
from penstock.core.cep import (
    AfterMatchSkipStrategy,
    BooleanConditions,
    IterativeCondition,
    Match,
    NoSkipStrategy,
    PatternFlatSelectFunction,
    PatternFlatTimeoutFunction,
    PatternProcessFunction,
    PatternSelectFunction,
    PatternTimeoutFunction,
    RichIterativeCondition,
    RichPatternFlatSelectFunction,
    RichPatternSelectFunction,
    SimpleCondition,
    SkipPastLastStrategy,
    SkipToFirstStrategy,
    SkipToLastStrategy,
    SkipToNextStrategy,
    TimedOutPartialMatchHandler,
)

__all__ = [
    "CEP",
    "AfterMatchSkipStrategy",
    "BooleanConditions",
    "ConsumingStrategy",
    "EventComparator",
    "GroupPattern",
    "IterativeCondition",
    "MalformedPatternError",
    "Match",
    "NoSkipStrategy",
    "Pattern",
    "PatternFlatSelectFunction",
    "PatternFlatTimeoutFunction",
    "PatternProcessFunction",
    "PatternSelectFunction",
    "PatternStream",
    "PatternTimeoutFunction",
    "Quantifier",
    "QuantifierProperty",
    "RichIterativeCondition",
    "RichPatternFlatSelectFunction",
    "RichPatternSelectFunction",
    "SimpleCondition",
    "SkipPastLastStrategy",
    "SkipToFirstStrategy",
    "SkipToLastStrategy",
    "SkipToNextStrategy",
    "TimedOutPartialMatchHandler",
    "Times",
    "WithinType",
]
