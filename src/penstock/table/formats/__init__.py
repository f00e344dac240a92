"""Formats of table connectors, for messages and files: one module for each, registered with `table_format`."""
