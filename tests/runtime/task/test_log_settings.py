"""Functions log as their program does: its levels and its format go to the workers."""

import io
import logging
import pickle
import sys

import pytest

from penstock.datastream import StreamExecutionEnvironment
from penstock.runtime.task.log_settings import LogSettings

NAME = "tests.log_settings"


@pytest.fixture(autouse=True)
def _logging_as_it_was():
    root = logging.getLogger()
    level, handlers = root.level, root.handlers
    yield
    root.setLevel(level)
    root.handlers = handlers
    logging.getLogger(NAME).setLevel(logging.NOTSET)


def forget_all():
    """A process that has not set up logging; pytest has."""
    logging.getLogger().handlers = []
    logging.getLogger().setLevel(logging.WARNING)
    logging.getLogger(NAME).setLevel(logging.NOTSET)


def travelled(settings):
    """The settings in another process."""
    settings = pickle.loads(pickle.dumps(settings))
    forget_all()
    return settings


def test_level_and_format_of_the_program_hold_in_a_worker(monkeypatch):
    forget_all()
    logging.basicConfig(level=logging.INFO, format="%(levelname)s|%(name)s|%(message)s")
    settings = travelled(LogSettings.here())
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    settings.apply()
    settings.apply()
    logging.getLogger(NAME).info("once")
    logging.getLogger(NAME).debug("never")
    assert sys.stderr.getvalue() == f"INFO|{NAME}|once\n"


def test_a_logger_with_a_level_of_its_own_keeps_it():
    forget_all()
    logging.basicConfig(level=logging.WARNING)
    logging.getLogger(NAME).setLevel(logging.DEBUG)
    settings = travelled(LogSettings.here())
    settings.apply()
    assert logging.getLogger(NAME).isEnabledFor(logging.DEBUG)
    assert not logging.getLogger("tests.another").isEnabledFor(logging.INFO)


class Shouting(logging.Formatter):
    def format(self, record):
        return super().format(record).upper()


def test_a_formatter_class_of_the_program_travels(monkeypatch):
    forget_all()
    handler = logging.StreamHandler()
    handler.setFormatter(Shouting("%(message)s"))
    logging.getLogger().addHandler(handler)
    settings = travelled(LogSettings.here())
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    settings.apply()
    logging.getLogger(NAME).warning("loud")
    assert sys.stderr.getvalue() == "LOUD\n"


def test_a_program_that_has_not_set_up_logging_changes_nothing():
    forget_all()
    travelled(LogSettings.here()).apply()
    assert logging.getLogger().handlers == []


def log_setup(value):
    (handler,) = logging.getLogger().handlers
    return logging.getLogger().level, logging.getLogger(NAME).level, handler.formatter._fmt


@pytest.mark.spark
def test_functions_on_spark_log_as_the_program_does(spark):
    forget_all()
    logging.basicConfig(level=logging.INFO, format="[%(name)s] %(message)s")
    logging.getLogger(NAME).setLevel(logging.ERROR)
    env = StreamExecutionEnvironment(spark=spark).set_parallelism(1)
    stream = env.from_collection([1]).map(log_setup).key_by(lambda _: 0).map(lambda seen: (seen, log_setup(seen)))
    expected = (logging.INFO, logging.ERROR, "[%(name)s] %(message)s")
    assert list(stream.execute_and_collect()) == [(expected, expected)]
