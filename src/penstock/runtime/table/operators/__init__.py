"""Table operators: one for each file, with the name that Flink's runtime gives it."""
