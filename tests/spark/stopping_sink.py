"""A sink that says when it has committed some batches, to a program that is to stop then."""

import threading
from pathlib import Path

from counting_job import FilesCommitter, FilesSink

enough = threading.Event()


class StoppingSink(FilesSink):
    """Writes files, and sets the event with the third of them."""

    def create_committer(self):
        return _StoppingCommitter(Path(self.directory))


class _StoppingCommitter(FilesCommitter):
    def commit(self, committables, checkpoint_id):
        super().commit(committables, checkpoint_id)
        if checkpoint_id >= 3:
            enough.set()
