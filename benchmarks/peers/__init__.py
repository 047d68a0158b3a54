"""The systems Dovetail is compared with, one module each (see ``benchmarks/systems.py`` for what they offer)."""
