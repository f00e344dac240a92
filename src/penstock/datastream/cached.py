"""Streams that a later job reads again."""

from __future__ import annotations

from penstock.datastream.data_stream import DataStream

__all__ = ["CachedDataStream"]


class CachedDataStream(DataStream):
    """A bounded stream whose records may be read by several jobs.

    Sources here give the same records whenever they are read, so a later job that uses the stream computes it anew and
    gets the same result; nothing needs to be stored, and nothing can go stale.
    """

    def invalidate(self) -> None:
        """Forget what is cached; harmless, since the stream can always be computed again."""
        self._env._check_open()
