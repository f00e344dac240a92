"""Nodes of the logical plan, with all names and types resolved. One module for each family."""
