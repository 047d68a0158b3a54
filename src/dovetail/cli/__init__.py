"""The command line: one module per verb, joined in ``app``."""

from dovetail.cli.app import app, main

__all__ = ["app", "main"]
