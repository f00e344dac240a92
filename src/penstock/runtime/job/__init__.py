"""A job on the driver: its status, progress, clients and history."""
