"""Stream operators, one module for each. All executors run the same operators."""
