"""Patterns that cannot be: the error names the pattern, what is wrong and what to do."""

import pytest

from penstock.cep import AfterMatchSkipStrategy, MalformedPatternError, Pattern, WithinType
from penstock.cep.nfa_compiler import NFACompiler
from penstock.common.errors import InvalidProgramError, UnsupportedFeatureError


def a():
    return Pattern.begin("a")


def loop():
    return a().one_or_more()


def group():
    return Pattern.begin(Pattern.begin("in").followed_by("out"))


def skip(name):
    return Pattern.begin("a", AfterMatchSkipStrategy.skip_to_first(name))


AT_THE_CALL = [
    ("a second quantifier", lambda: loop().times(2), MalformedPatternError, "'a' already has a quantifier"),
    ("times zero", lambda: a().times(0), InvalidProgramError, r"times\(0\) of pattern 'a'"),
    ("times zero to zero", lambda: a().times(0, 0), InvalidProgramError, "of pattern 'a' is not valid"),
    ("negative times", lambda: a().times(-1), InvalidProgramError, r"times\(-1\)"),
    ("an upper number below the lower one", lambda: a().times(3, 2), InvalidProgramError, r"times\(3, 2\)"),
    ("times_or_more zero", lambda: a().times_or_more(0), InvalidProgramError, r"times_or_more\(0\)"),
    ("optional twice", lambda: a().optional().optional(), MalformedPatternError, "'a' is already optional"),
    ("an optional NOT", lambda: a().not_next("n").optional(), MalformedPatternError, "'n' is a NOT pattern"),
    (
        "optional after greedy",
        lambda: loop().greedy().next("b").optional(),
        MalformedPatternError,
        "'b' is optional after the greedy pattern 'a'",
    ),
    ("greedy without a loop", lambda: a().greedy(), MalformedPatternError, "'a' is not a loop"),
    ("a greedy group", lambda: group().one_or_more().greedy(), MalformedPatternError, "is a group"),
    ("a greedy NOT", lambda: a().not_next("n").greedy(), MalformedPatternError, "'n' is a NOT pattern"),
    ("greedy combinations", lambda: loop().allow_combinations().greedy(), MalformedPatternError, "allows combinations"),
    ("consecutive without a loop", lambda: a().consecutive(), MalformedPatternError, "'a' is not a loop"),
    ("combinations without a loop", lambda: a().allow_combinations(), MalformedPatternError, "'a' is not a loop"),
    ("consecutive twice", lambda: loop().consecutive().consecutive(), MalformedPatternError, "already"),
    (
        "consecutive and combinations",
        lambda: loop().consecutive().allow_combinations(),
        MalformedPatternError,
        "call one of the two, once",
    ),
    ("until without a loop", lambda: a().until(bool), MalformedPatternError, "no loop without end"),
    ("until on times", lambda: a().times(2).until(bool), MalformedPatternError, "no loop without end"),
    (
        "until twice",
        lambda: loop().until(bool).until(bool),
        MalformedPatternError,
        r"already has an until\(\) condition",
    ),
    (
        "a NOT that repeats",
        lambda: a().not_followed_by("n").times(2),
        MalformedPatternError,
        r"does not support times\(\)",
    ),
    (
        "a NOT that loops",
        lambda: a().not_next("n").one_or_more(),
        MalformedPatternError,
        r"does not support one_or_more\(\)",
    ),
    (
        "not_next after optional",
        lambda: a().next("b").optional().not_next("n"),
        UnsupportedFeatureError,
        "'b' is optional",
    ),
    (
        "not_followed_by after times from zero",
        lambda: a().next("b").times(0, 2).not_followed_by("n"),
        UnsupportedFeatureError,
        "'b' is optional",
    ),
    ("where on a group", lambda: group().where(bool), UnsupportedFeatureError, r"does not support where\(\)"),
    ("or on a group", lambda: group().or_(bool), UnsupportedFeatureError, r"does not support or_\(\)"),
    ("subtype on a group", lambda: group().subtype(int), UnsupportedFeatureError, r"does not support subtype\(\)"),
    ("no condition", lambda: a().where(None), InvalidProgramError, r"where\(\) of pattern 'a'"),
    ("a condition that is not a function", lambda: a().or_(3), InvalidProgramError, r"or_\(\) of pattern 'a'"),
    ("no stop condition", lambda: loop().until(None), InvalidProgramError, r"until\(\) of pattern 'a'"),
    ("a subtype that is not a class", lambda: a().subtype(None), InvalidProgramError, "takes a class"),
    ("no name", lambda: a().next(""), InvalidProgramError, r"next\(\) takes the name of a pattern"),
    ("a colon in a name", lambda: Pattern.begin("a:1"), InvalidProgramError, "must not contain a colon"),
    ("a colon in the name of a NOT", lambda: a().not_next("n:1"), InvalidProgramError, "must not contain a colon"),
    ("a negative limit", lambda: a().within(-1), InvalidProgramError, r"within\(\) of pattern 'a'.*negative"),
    ("a negative loop window", lambda: a().one_or_more(-1), InvalidProgramError, r"one_or_more\(\).*negative"),
    ("a kind of limit that is none", lambda: a().within(1, "first"), InvalidProgramError, "takes a WithinType"),
    ("a strategy that is none", lambda: Pattern.begin("a", "past"), InvalidProgramError, "AfterMatchSkipStrategy"),
]

WHEN_APPLIED = [
    ("a name twice", lambda: a().next("b").next("a"), MalformedPatternError, "name 'a' is used twice"),
    ("a name twice, in a group", lambda: group().next("out"), MalformedPatternError, "name 'out' is used twice"),
    ("the name of the end", lambda: Pattern.begin("$endState$"), MalformedPatternError, "is reserved"),
    ("a trailing NOT without a limit", lambda: a().not_followed_by("n"), MalformedPatternError, "has no time limit"),
    (
        "a trailing NOT with a limit of zero",
        lambda: a().not_followed_by("n").within(0),
        MalformedPatternError,
        "has no time limit",
    ),
    ("a skip to no pattern", lambda: skip("x"), MalformedPatternError, "Skip to one of 'a'"),
    (
        "a skip into a group",
        lambda: skip("in").next(Pattern.begin("in")),
        MalformedPatternError,
        "Patterns inside groups are not possible",
    ),
    (
        "a limit since the previous event that is longer than the whole",
        lambda: a().next("b").within(9, WithinType.PREVIOUS_AND_CURRENT).within(5),
        MalformedPatternError,
        "'b' allows 9 ms",
    ),
    (
        "a loop window that is longer than the whole",
        lambda: a().next("b").times(2, 3, 9).within(5),
        MalformedPatternError,
        "'b' allows 9 ms",
    ),
    (
        "a group without end of optional patterns",
        lambda: Pattern.begin(Pattern.begin("x").optional().next("y").optional()).one_or_more(),
        MalformedPatternError,
        "'y' repeats without limit",
    ),
    (
        "a NOT after optional patterns alone",
        lambda: Pattern.begin(Pattern.begin("x").optional()).not_next("n").next("b"),
        UnsupportedFeatureError,
        "everything before pattern 'n' is optional",
    ),
]


@pytest.mark.parametrize(("what", "define", "error", "message"), AT_THE_CALL, ids=[one[0] for one in AT_THE_CALL])
def test_refused_at_the_call(what, define, error, message):
    with pytest.raises(error, match=message):
        define()


@pytest.mark.parametrize(("what", "define", "error", "message"), WHEN_APPLIED, ids=[one[0] for one in WHEN_APPLIED])
def test_refused_when_applied(what, define, error, message):
    pattern = define()
    with pytest.raises(error, match=message):
        NFACompiler.compile(pattern)


def test_malformed_patterns_are_invalid_programs():
    assert issubclass(MalformedPatternError, InvalidProgramError)


ACCEPTED = [
    ("greedy before combinations", lambda: loop().greedy().allow_combinations()),
    ("everything optional", lambda: a().optional().next("b").optional()),
    ("a limit of zero", lambda: a().within(0)),
    ("a greedy last pattern", lambda: a().next("b").one_or_more().greedy()),
    ("a limit of None", lambda: a().within(None)),
    ("a skip to the name of all groups", lambda: skip("GroupPattern").next(Pattern.begin("in"))),
]


@pytest.mark.parametrize(("what", "define"), ACCEPTED, ids=[one[0] for one in ACCEPTED])
def test_accepted(what, define):
    assert NFACompiler.compile(define()) is not None


def test_two_sequences_may_share_their_beginning():
    first = a()
    left, right = first.followed_by("left"), first.followed_by("right")
    assert (str(left), str(right)) == ("a -> left", "a -> right")
