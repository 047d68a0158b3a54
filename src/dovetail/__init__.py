"""Dovetail fits deep learning to hardware.

The public names below are loaded on first use, so that ``import dovetail`` stays cheap:

    program      text                           -> Program
    load_target  name of a target, or its file  -> Target
    mappings     program, target                -> fits and misfits
    compile      program or definition, target  -> Kernel, a callable over arrays
    verify       program, target                -> every element it computes, compared with the reference
"""

import importlib
from typing import TYPE_CHECKING

__version__ = "0.1.0"

__all__ = ["__version__", "compile", "load_target", "mappings", "program", "verify"]

if TYPE_CHECKING:
    from dovetail.pipeline import compile, mappings, program, verify
    from dovetail.targets.load import load_target
else:
    _HOME = {
        "compile": "dovetail.pipeline",
        "load_target": "dovetail.targets.load",
        "mappings": "dovetail.pipeline",
        "program": "dovetail.pipeline",
        "verify": "dovetail.pipeline",
    }

    def __getattr__(name: str) -> object:
        """Load a public name from its module and keep it (PEP 562)."""
        if name not in _HOME:
            raise AttributeError(f"module 'dovetail' has no attribute '{name}'; it has: {', '.join(__all__)}")
        value = getattr(importlib.import_module(_HOME[name]), name)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted(__all__)
