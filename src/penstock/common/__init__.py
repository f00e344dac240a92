"""Shared by all layers."""
