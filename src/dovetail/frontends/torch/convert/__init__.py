"""Conversions of ATen operators, by what they do; ``table`` has them all."""
