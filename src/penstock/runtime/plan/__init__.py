"""The physical plan: vertices, edges and offsets."""
