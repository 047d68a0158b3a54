"""Checking that rules keep types and values."""
