"""Flink's REST API over the jobs of this process: one module per group of endpoints, JSON built from snapshots."""
