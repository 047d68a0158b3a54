"""Runs both parts; 0 when everything is right."""

from __future__ import annotations

import sys

from dovetail.demo import model, programs

if __name__ == "__main__":
    sys.exit(max(programs.main(), model.main()))
