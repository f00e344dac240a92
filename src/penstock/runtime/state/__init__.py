"""Keyed state in pages, operator state, and time-to-live."""
