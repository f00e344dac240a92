"""Savepoints: a self-contained directory with all state of a job, independent of the engine that wrote it.

`docs/state.md` describes the format. The layout of a savepoint:

* ``_metadata``: JSON, written last; without it there is no savepoint (`manifest.py`);
* ``<operator id>/keyed-*.data``: keyed state and timers in blocks by key group (`blocks.py`, `capture.py`);
* ``<operator id>/operator-*.data``: operator state, one block per state.

The manifest has the size and checksum of every file. Every block has its own checksum.
"""
