"""Iterations in supersteps: vertex-centric, scatter-gather and gather-sum-apply."""
