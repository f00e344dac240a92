"""Table operators: changelog rows in columns. Engine-free, like everything below `penstock.runtime`."""
