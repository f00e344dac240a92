"""Contracts of tables that both the API and the runtime need: data types, user-defined functions."""
