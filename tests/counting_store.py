"""A page store that counts what is written to it."""

from penstock.runtime.state.pages import MemoryPageStore


class CountingStore(MemoryPageStore):
    """Notes how much is written."""

    __slots__ = ("written",)

    def __init__(self):
        super().__init__()
        self.written = 0

    def put(self, page_id, blob):
        self.written += len(blob)
        super().put(page_id, blob)

    def take_written(self):
        written, self.written = self.written, 0
        return written
