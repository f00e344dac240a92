"""Nodes of the logical plan: what a query means, with all names and types resolved. One family for each module."""
