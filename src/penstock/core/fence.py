"""The fence: the check before each step that only one driver of a job may take."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["Fence"]


class Fence:
    """A fence that is always open: for a job whose checkpoints no other driver can find.

    A job with a checkpoint directory has a lease on it, :class:`penstock.runtime.lease.lease.Lease`.
    """

    epoch: int = 0
    """The driver's epoch, higher than that of every earlier driver; 0 if there cannot be another driver."""

    def check(self) -> None:
        """Raise a :class:`~penstock.common.errors.FencedError` if another driver has taken over."""
        return

    def raise_if_lost(self) -> None:
        """Raise the same error, but without accessing the storage."""
        return

    def release(self, *, remove: Callable[[], None] | None = None) -> None:
        """Release the lease when the job ends, so that the next driver need not wait.

        :param remove: removes the directory; called if this driver still owns it
        """
        if remove is not None:
            remove()
