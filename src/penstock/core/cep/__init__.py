"""The types that users of CEP implement or receive: conditions, functions, matches, skip strategies."""

from penstock.core.cep.after_match_skip_strategy import (
    AfterMatchSkipStrategy,
    NoSkipStrategy,
    SkipPastLastStrategy,
    SkipToElementStrategy,
    SkipToFirstStrategy,
    SkipToLastStrategy,
    SkipToNextStrategy,
)
from penstock.core.cep.conditions import (
    BooleanConditions,
    IterativeCondition,
    RichAndCondition,
    RichIterativeCondition,
    RichNotCondition,
    RichOrCondition,
    SimpleCondition,
    SubtypeCondition,
)
from penstock.core.cep.functions import (
    PatternFlatSelectFunction,
    PatternFlatTimeoutFunction,
    PatternProcessFunction,
    PatternSelectFunction,
    PatternTimeoutFunction,
    RichPatternFlatSelectFunction,
    RichPatternSelectFunction,
    TimedOutPartialMatchHandler,
)
from penstock.core.cep.match import Match

__all__ = [
    "AfterMatchSkipStrategy",
    "BooleanConditions",
    "IterativeCondition",
    "Match",
    "NoSkipStrategy",
    "PatternFlatSelectFunction",
    "PatternFlatTimeoutFunction",
    "PatternProcessFunction",
    "PatternSelectFunction",
    "PatternTimeoutFunction",
    "RichAndCondition",
    "RichIterativeCondition",
    "RichNotCondition",
    "RichOrCondition",
    "RichPatternFlatSelectFunction",
    "RichPatternSelectFunction",
    "SimpleCondition",
    "SkipPastLastStrategy",
    "SkipToElementStrategy",
    "SkipToFirstStrategy",
    "SkipToLastStrategy",
    "SkipToNextStrategy",
    "SubtypeCondition",
    "TimedOutPartialMatchHandler",
]
