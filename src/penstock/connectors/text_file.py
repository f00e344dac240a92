"""A source of lines of text files."""

from __future__ import annotations

import os

from penstock.common.errors import InvalidProgramError
from penstock.connectors.file_system.source import FileSource
from penstock.formats.file_format import StreamFormat

__all__ = ["TextFileSource"]


class TextFileSource(FileSource[str]):
    """Reads the lines of a file, or of all files below a directory, as of the start of the job."""

    def __init__(self, *paths: str | os.PathLike[str], encoding: str = "UTF-8") -> None:
        if not paths:
            raise InvalidProgramError("a text file source needs the path of a file or a directory")
        super().__init__(*paths, format=StreamFormat.text_line_format(encoding))
