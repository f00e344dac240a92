"""Contracts of tables that the API and the runtime share: data types, user-defined functions."""
