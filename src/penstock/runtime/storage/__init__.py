"""Small files that are written atomically and verified when read."""
