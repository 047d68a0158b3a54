"""Benchmarks of Dovetail against the libraries people use today: one harness, one protocol (see README.md)."""
