"""Timers, under PyFlink's name."""

from penstock.core.timerservice import TimerService

__all__ = ["TimerService"]
