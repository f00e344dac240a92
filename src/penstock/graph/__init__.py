"""Translates API calls to a job: transformations -> stream graph -> job graph (chains, uids, exchanges, levels)."""
