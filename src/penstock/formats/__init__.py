"""Formats of records in messages and files.

A schema fails on a message that it cannot read, unless you tell it to skip such messages. :func:`decode` can also send
them to a side output.
"""

from __future__ import annotations

from penstock.formats.decoding import DeadLetter, decode

__all__ = ["DeadLetter", "decode"]
