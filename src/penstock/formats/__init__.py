"""Formats: how records look in messages and files.

Every schema fails on a message it cannot read, unless it is told to skip such messages; :func:`decode` can also put
them aside, into a side output.
"""

from __future__ import annotations

from penstock.formats.decoding import DeadLetter, decode

__all__ = ["DeadLetter", "decode"]
