"""Translates logical nodes to transformations: one module per family of nodes, registered with `translates`."""
