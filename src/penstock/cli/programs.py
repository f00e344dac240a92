"""Runs the user's file like Python, with the defaults of the command line."""

from __future__ import annotations

import argparse
import importlib
import runpy
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

from penstock.common.configuration import Configuration
from penstock.common.configuration_file import settings_of_environment
from penstock.common.errors import InvalidProgramError, PenstockError, UnsupportedFeatureError
from penstock.common.spark_execution_mode import EXECUTION_MODE
from penstock.datastream.execution_defaults import ExecutionDefaults, execution_defaults

__all__ = ["check_program", "configuration", "run_program"]

_ARCHIVES = {".zip", ".whl"}


def configuration(options: argparse.Namespace) -> Configuration:
    """Return the settings of the command line, which override those of the file in `PENSTOCK_CONF_DIR`.

    >>> options = argparse.Namespace(settings=["a.b=1=2"], parallelism=4, mode="continuous", py_files=None)
    >>> configuration(options).to_dict()
    {'a.b': '1=2', 'parallelism.default': '4', 'penstock.execution.mode': 'continuous'}
    """
    result = Configuration()
    for key, value in settings_of_environment().items():
        result.set_string(key, value)
    for setting in options.settings:
        key, equals, value = setting.partition("=")
        if not equals or not key:
            raise InvalidProgramError(f"-D needs KEY=VALUE, got {setting!r}")
        result.set_string(key, value)
    if options.parallelism is not None:
        result.set_integer("parallelism.default", options.parallelism)
    if options.mode is not None:
        result.set_string(EXECUTION_MODE, options.mode)
    files = [options.py_files] if options.py_files else []
    program = getattr(options, "program", None)
    if program is not None and program.suffix.lower() in _ARCHIVES:
        files.append(str(program.resolve()))  # its modules define functions
    if files:
        result.set_string("python.files", ",".join(files))
    return result


def check_program(path: Path) -> None:
    """Raise an error if the file is missing or cannot be a program."""
    if path.is_dir():
        raise InvalidProgramError(f"'{path}' is a directory: name a Python file in it")
    if not path.is_file():
        raise InvalidProgramError(f"the file '{path}' does not exist")


def run_program(path: Path, arguments: list[str], defaults: ExecutionDefaults, entry: str | None = None) -> int:
    """Run a file like ``python file arguments``, and return the exit code.

    :param entry: a module (`pkg.job`) or function (`pkg.job:main`) of the file's directory or archive to run instead

    An error of the program is shown only with its own frames, and an error of Penstock as a single message.
    """
    check_program(path)
    try:
        with execution_defaults(defaults), _as_main(path, arguments):
            _run_entry(path, entry)
    except SystemExit as end:
        return _exit_code(end)
    except PenstockError as error:
        _note_line(error, path)
        raise
    except Exception as error:
        traceback.print_exception(type(error), error, _own_frames(error.__traceback__, path))
        return 1
    return 0


def _run_entry(path: Path, entry: str | None) -> None:
    if entry is None:
        runpy.run_path(str(path), run_name="__main__")
        return
    module, _, function = entry.partition(":")
    try:
        if not function:
            runpy.run_module(module, run_name="__main__", alter_sys=False)
            return
        main = getattr(importlib.import_module(module), function, None)
    except ModuleNotFoundError as error:
        if error.name is not None and (module == error.name or module.startswith(f"{error.name}.")):
            raise InvalidProgramError(f"{path} has no module '{module}' to run (--entry {entry})") from None
        raise
    if not callable(main):
        raise InvalidProgramError(f"module '{module}' of {path} has no function '{function}' (--entry {entry})")
    main()


@contextmanager
def _as_main(path: Path, arguments: list[str]) -> Iterator[None]:
    argv, search = sys.argv[:], sys.path[:]
    # An argument "--" only marks the end of our own arguments.
    sys.argv = [str(path), *(arguments[1:] if arguments[:1] == ["--"] else arguments)]
    sys.path.insert(0, str(path.resolve() if path.suffix.lower() in _ARCHIVES else path.resolve().parent))
    try:
        yield
    finally:
        sys.argv, sys.path = argv, search


def _exit_code(end: SystemExit) -> int:
    if end.code is None:
        return 0
    if isinstance(end.code, int):
        return end.code
    print(end.code, file=sys.stderr)  # sys.exit("message")
    return 1


def _own_frames(frames: TracebackType | None, path: Path) -> TracebackType | None:
    """Return the traceback from the program's first frame on, or None if it never ran (a file that is not Python)."""
    here = frames
    while here is not None and here.tb_frame.f_code.co_filename != str(path):
        here = here.tb_next
    return here


def _note_line(error: PenstockError, path: Path) -> None:
    """Add the line of the program to the error if the program is wrong, rather than its data."""
    here = _own_frames(error.__traceback__, path)
    if isinstance(error, (InvalidProgramError, UnsupportedFeatureError)) and here is not None:
        error.add_note(f"in {path}, line {here.tb_lineno}")
