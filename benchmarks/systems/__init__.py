"""The systems under measurement: how each is installed, configured and driven."""
