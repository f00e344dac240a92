"""The ``penstock`` command: run programs, show their plan, check the machine, control jobs."""
