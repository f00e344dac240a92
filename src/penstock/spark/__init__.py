"""The Spark engine: a job graph as one Structured Streaming query. The only package that imports pyspark."""
