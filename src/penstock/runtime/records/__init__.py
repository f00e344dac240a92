"""Records in a task's memory: serialization, copies, keys, and the registry of stored classes."""
