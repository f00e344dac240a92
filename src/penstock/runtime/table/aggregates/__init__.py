"""Aggregate functions in columns."""
