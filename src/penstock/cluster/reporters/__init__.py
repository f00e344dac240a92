"""Metrics for other systems: Prometheus, push gateway, StatsD, Graphite, OpenTelemetry, the log."""
