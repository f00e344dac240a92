"""Flink's REST API for the jobs of this process: one module per group of endpoints, JSON from snapshots."""
