"""Polyhedral analysis on integers, tuples and isl text; knows no IR, and is the only user of islpy."""
