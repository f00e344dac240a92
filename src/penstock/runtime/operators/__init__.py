"""Stream operators: one module for each, the same object on every executor."""
