"""Runs a job graph as one Spark query. This is the only package that imports pyspark."""

import warnings

# pyspark warns about pandas 3 on every import, although nothing here uses pandas.
warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas", category=FutureWarning)
