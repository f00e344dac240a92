"""The size of batches, learned from previous batches."""

from __future__ import annotations

from statistics import median

MIN_BATCH_RECORDS = 1_000
FIRST_BATCH_RECORDS = 50_000
MAX_BATCH_RECORDS = 4_000_000
TARGET_BATCH_SECONDS = 1.5
_TRIAL_EVERY = 2
_MAX_PATIENCE = 16
_WORTH_IT = 1.2


class BatchSizer:
    """Decides how many records the next batch may have.

    A batch has fixed costs besides the costs of its records, so a size is never derived from a rate. Batches are
    doubled until they take the target time. From then on, twice the size is tried now and then. It is kept if it gives
    a clearly higher rate, for instance because every batch writes a large state. The first batches are ignored, because
    they include the start of workers.


    >>> sizer = BatchSizer()
    >>> for _ in range(3):
    ...     sizer.observe(records=50_000, seconds=0.5)
    >>> sizer.limit
    100000
    """

    first_records = FIRST_BATCH_RECORDS
    least_records = MIN_BATCH_RECORDS
    target_seconds = TARGET_BATCH_SECONDS
    too_long = 5
    """Multiples of the target."""

    def __init__(self, fixed: int | None = None) -> None:
        self.fixed = fixed is not None
        self._seen = 0
        self._rates: list[float] = []  # of full batches since the size has changed
        self._trial_against: float | None = None  # the rate of half the size, while a larger size is on trial
        self._patience = _TRIAL_EVERY
        self.limit = fixed or self.first_records

    def observe(self, records: int, seconds: float) -> None:
        """Learn from a batch. A batch that was not full says nothing about full ones."""
        self._seen += 1
        if self.fixed or self._seen <= 2 or records < self.limit // 2:
            return
        self._rates.append(records / max(seconds, 1e-6))
        if seconds > self.too_long * self.target_seconds:
            self._resize(self.limit // 4 if seconds > 2 * self.too_long * self.target_seconds else self.limit // 2)
        elif seconds < self.target_seconds / 2:
            self._resize(2 * self.limit)
        elif self._trial_against is not None and self._rates[-1] <= _WORTH_IT * self._trial_against:
            self._patience = min(2 * self._patience, _MAX_PATIENCE)
            self._resize(self.limit // 2)
        elif seconds < 3 * self.target_seconds and (self._trial_against or len(self._rates) >= self._patience):
            # After a successful trial, the next larger size is tried at once.
            self._patience = _TRIAL_EVERY if self._trial_against else self._patience
            rate = median(self._rates[-_TRIAL_EVERY:])
            self._resize(2 * self.limit)
            self._trial_against = rate
        else:
            self._trial_against = None

    def _resize(self, limit: int) -> None:
        self.limit = min(max(limit, self.least_records), MAX_BATCH_RECORDS)
        self._rates.clear()
        self._trial_against = None


class StepSizer(BatchSizer):
    """Sizes the steps of the continuous mode. They have small fixed costs, and arriving records wait for their end."""

    first_records = 2_000
    least_records = 20
    target_seconds = 0.1
    too_long = 2
