"""SQL statements, parsed by sqlglot with our own Flink dialect, or by hand."""
