"""Built-in functions. Each module registers a family of them; see `registry.py` for how to add one."""
