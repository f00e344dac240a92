"""Table connectors: one module for each, registered with `connector`."""
