"""Built-in functions. Each module registers one family; see `registry.py` for how to add a function."""
