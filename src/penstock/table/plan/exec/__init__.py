"""From logical nodes to transformations: one module for each family of nodes, registered by `translates`."""
