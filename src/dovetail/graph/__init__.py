"""Passes over graphs: what is computed once, left out, written more simply, and compiled together."""
