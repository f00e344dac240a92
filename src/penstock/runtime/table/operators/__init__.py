"""Table operators: one per file, with the names of Flink's runtime."""
