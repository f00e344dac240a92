"""SQL: statements, parsed by sqlglot with a Flink dialect of our own, or by hand."""
