"""The ``penstock`` command: run programs, look at their plan, look at the machine."""
