"""Small helpers under the names of ``pyflink.util``."""
