"""Connectors of tables: one module for each, registered by `connector`."""
