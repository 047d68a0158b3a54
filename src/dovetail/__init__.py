"""Dovetail fits deep learning to hardware.

The public names below are loaded on first use, so that ``import dovetail`` stays cheap:

    program      text                           -> Program, loops and arithmetic
    definition   text                           -> Definition, a term of the functional language
    functional   the module in which definitions are written in Python
    Rule         a rewrite rule of your own
    pattern      a Python function over operators, ``op``, and what takes its place in a model's graph
    load_target  name of a target, or its file  -> Target
    mappings     program, target                -> fits and misfits
    compile      program or definition, target  -> Kernel, a callable over arrays
    load         .onnx or .dovetail file        -> a model, a callable over arrays
    verify       program or definition, target  -> every element it computes, compared with the reference
    explore      program or definition, target  -> the fastest that rules make of it, and how it follows
"""

import importlib
from typing import TYPE_CHECKING

__version__ = "0.1.0"

__all__ = [
    "Rule",
    "__version__",
    "compile",
    "definition",
    "explore",
    "functional",
    "load",
    "load_target",
    "mappings",
    "op",
    "pattern",
    "program",
    "verify",
]

if TYPE_CHECKING:
    from dovetail.frontends import functional
    from dovetail.pipeline import compile, definition, explore, load, mappings, program, verify
    from dovetail.rewrite.patterns.decorator import pattern
    from dovetail.rewrite.patterns.trace import op
    from dovetail.rewrite.rule import Rule
    from dovetail.targets.load import load_target
else:
    _HOME = {
        "Rule": "dovetail.rewrite.rule",
        "compile": "dovetail.pipeline",
        "definition": "dovetail.pipeline",
        "explore": "dovetail.pipeline",
        "functional": "dovetail.frontends.functional",
        "load": "dovetail.pipeline",
        "load_target": "dovetail.targets.load",
        "mappings": "dovetail.pipeline",
        "op": "dovetail.rewrite.patterns.trace",
        "pattern": "dovetail.rewrite.patterns.decorator",
        "program": "dovetail.pipeline",
        "verify": "dovetail.pipeline",
    }

    def __getattr__(name: str) -> object:
        """Load a public name from its module and keep it (PEP 562)."""
        if name not in _HOME:
            raise AttributeError(f"module 'dovetail' has no attribute '{name}'; it has: {', '.join(__all__)}")
        home = importlib.import_module(_HOME[name])
        value = home if _HOME[name].endswith(f".{name}") else getattr(home, name)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted(__all__)
