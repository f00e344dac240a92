import inspect
import pickle

import pytest

from penstock.common import errors
from penstock.common.errors import (
    InvalidProgramError,
    JobExecutionError,
    MissingTimestampError,
    PenstockError,
    SerializationError,
    StateAccessError,
    TypeMismatchError,
    UserFunctionError,
    shorten,
)


def round_trip(error):
    return pickle.loads(pickle.dumps(error))


ERRORS = [
    UserFunctionError("map-1", 2, "('a', 1)", "Traceback ...\nValueError: no", "map"),
    InvalidProgramError("gap must be positive"),
    StateAccessError("no key in scope", operator_name="process"),
    MissingTimestampError("no timestamp", operator_name="window", record=("a", 1)),
    TypeMismatchError("expected INT", operator_name="map", record="x"),
    errors.KeySelectorError("key is None", operator_name="key_by"),
    SerializationError("cannot pickle", operator_name="map", member="self.lock"),
    errors.EnvironmentStoppedError("stopped"),
    errors.MalformedPatternError("no pattern"),
    errors.CheckpointError("damaged"),
    errors.CheckpointInUseError("held"),
    errors.FencedError("replaced"),
    JobExecutionError("lost", job_id="0" * 32),
    errors.StorageError("no space left"),
    errors.RetryCommitError("busy"),
    errors.RecordFormatError("no JSON", message=b"{"),
    errors.SavepointError("damaged"),
    errors.UnsupportedFeatureError("no Java"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_errors_survive_pickling_with_message_and_fields(error):
    error.add_note("a note")
    copy = round_trip(error)
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert copy.args == error.args
    assert vars(copy) == vars(error)
    assert str(round_trip(copy)) == str(error)


def test_every_public_error_is_a_penstock_error_and_is_covered_above():
    classes = {getattr(errors, name) for name in errors.__all__ if inspect.isclass(getattr(errors, name))}
    assert all(issubclass(cls, PenstockError) for cls in classes)
    assert {type(error) for error in ERRORS} == classes - {PenstockError}


def test_user_function_error_shows_operator_subtask_method_record_and_traceback_last():
    text = str(
        UserFunctionError("Map(f)", 3, "('a', 0)", "Traceback ...\nZeroDivisionError: division by zero\n", "map")
    )
    assert text.splitlines() == [
        "User function failed in operator 'Map(f)', subtask 3, method map",
        "  record: ('a', 0)",
        "Traceback ...",
        "ZeroDivisionError: division by zero",
    ]


def test_user_function_error_without_record_does_not_mention_one():
    assert "record" not in str(UserFunctionError("source", 0, None, "Traceback", "open"))


def test_user_function_error_never_holds_a_long_record():
    assert len(UserFunctionError("map", 0, "x" * 10_000).record) == 200


def test_operator_errors_name_operator_and_record():
    error = MissingTimestampError("the record has no timestamp", operator_name="window", record=("a", 1))
    assert str(error) == "the record has no timestamp [operator 'window'] [record ('a', 1)]"
    assert error.record == "('a', 1)"


def test_serialization_error_names_the_member_and_the_remedy():
    text = str(SerializationError("cannot be pickled", operator_name="map", member="self.lock"))
    assert "'self.lock'" in text
    assert "open()" in text


def test_errors_can_be_caught_by_the_builtin_class_of_their_kind():
    assert issubclass(InvalidProgramError, ValueError)
    assert issubclass(TypeMismatchError, TypeError)
    assert issubclass(errors.UnsupportedFeatureError, NotImplementedError)


class Explosive:
    def __repr__(self):
        raise RuntimeError("boom")


class NoText:
    def __repr__(self):
        return 5


class Endless(list):
    def __repr__(self):
        return repr([self])


@pytest.mark.parametrize(
    "value", [Explosive(), NoText(), [Explosive()], {Explosive(): 1}, [10**5000], Endless()], ids=type
)
def test_shorten_never_raises(value):
    assert isinstance(shorten(value), str)


@pytest.mark.parametrize(
    "value",
    ["x" * 10_000, b"x" * 10_000, list(range(10_000)), {i: i for i in range(10_000)}, [["x" * 300] * 300] * 300],
)
def test_shorten_keeps_the_limit(value):
    assert len(shorten(value)) <= 200
    assert len(shorten(value, 20)) <= 20


@pytest.mark.parametrize("value", [1, "a", ("a", 1), {"b": 2, "a": 1}, [1, [2, [3]]], None, {1, 2}, b"ab", 1.5])
def test_shorten_shows_small_values_as_repr_does(value):
    assert shorten(value) == repr(value)


def test_shorten_of_a_self_containing_list_ends():
    endless = [1]
    endless.append(endless)
    assert shorten(endless).startswith("[1, [1,")
