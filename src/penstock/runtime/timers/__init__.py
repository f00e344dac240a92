"""Timers per key in both time domains."""
