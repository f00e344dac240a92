"""Formats of table connectors: rows in bytes and in files, one module for each, registered by `table_format`."""
