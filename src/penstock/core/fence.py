"""The check before each step that only one driver of a job may take."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["Fence"]


class Fence:
    """A fence that is always open: for a job whose checkpoints no other driver can find.

    A job with a checkpoint directory has a lease on it, :class:`penstock.runtime.lease.lease.Lease`.
    """

    epoch: int = 0
    """Higher than that of every driver before; 0 if there can be no other."""

    def check(self) -> None:
        """Raise a :class:`~penstock.common.errors.FencedError` if another driver has taken over."""
        return

    def raise_if_lost(self) -> None:
        """The same, but without looking at the storage."""
        return

    def release(self, *, remove: Callable[[], None] | None = None) -> None:
        """The job is over: the next driver need not wait.

        :param remove: removes the directory; called if it is still this driver's
        """
        if remove is not None:
            remove()
