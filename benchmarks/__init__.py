"""Benchmarks: Penstock beside PyFlink and plain PySpark, the same jobs, the same machine, one run."""
