"""A job graph as one Spark query; the only package that imports pyspark."""

import warnings

# pyspark warns of pandas 3 whenever it is imported, though nothing here uses pandas.
warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas", category=FutureWarning)
