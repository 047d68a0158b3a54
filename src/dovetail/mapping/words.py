"""Operations in words, for messages and names."""

from __future__ import annotations

from dovetail.ir.expr import Read
from dovetail.mapping.typed import Typed

_DOES = {
    "mul": "multiplies",
    "add": "adds",
    "sub": "subtracts",
    "div": "divides",
    "max": "takes the maximum of",
    "min": "takes the minimum of",
    "exp": "takes the exponential of",
    "neg": "negates",
    "select": "selects among",
}
_VERB = {"mul": "multiply by", "add": "add", "or": "or with", "xor": "xor with"}
_COUNT = {1: "one tensor", 2: "two tensors", 3: "three tensors", 4: "four tensors"}


def does(value: Typed) -> str:
    """``multiplies two tensors``."""
    tensors = {node.expr.access.tensor for node in value.walk() if isinstance(node.expr, Read)}
    what = _COUNT.get(len(tensors), f"{len(tensors)} tensors")
    if not value.args:
        return f"takes {what} as it is"
    return f"{_DOES.get(value.root, f'applies {value.root} to')} {what}"


def takes(value: Typed) -> str:
    """``reads one``."""
    tensors = {node.expr.access.tensor for node in value.walk() if isinstance(node.expr, Read)}
    count = {0: "none", 1: "one", 2: "two", 3: "three"}.get(len(tensors), str(len(tensors)))
    return f"reads {count}" if not value.args else f"has no product to give it: it computes {value.expr}"


def verb(function: str) -> str:
    """``multiply by``, to be followed by a tensor."""
    return _VERB.get(function, f"apply {function} with")
