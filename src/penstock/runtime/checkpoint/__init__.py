"""The life of a checkpoint: coordination, storage, and commits of sinks."""
