"""What runs inside every measured process: standard library only, because each system has its own environment."""
