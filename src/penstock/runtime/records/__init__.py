"""What a record goes through in a task's memory: serialization, copies, keys, and the registry of stored classes."""
