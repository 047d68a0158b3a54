"""Every operator there is on the host, by (domain, operator). A module of ``host`` has a table ``HOST`` of its own."""

from __future__ import annotations

from collections.abc import Mapping

from dovetail.base.words import printable
from dovetail.frontends.onnx.convert.attributes import malformed, unsupported
from dovetail.frontends.onnx.host import casting, image, learning, linear, movement, selection, signal, strings
from dovetail.frontends.onnx.host.call import Call, HostFunction, Results

_MODULES = (movement, selection, casting, strings, signal, image, linear, learning)

HOST: Mapping[tuple[str, str], HostFunction] = {key: made for module in _MODULES for key, made in module.HOST.items()}

LOOPS = frozenset({("", "Loop"), ("", "Scan")})
"""Run by the session, which has a session for their body."""
MISTAKES = (ValueError, TypeError, IndexError, KeyError, ArithmeticError)
"""What Python and NumPy raise where a node means nothing for its operands: an error of the model."""


def run(call: Call) -> Results:
    """What the operator makes; what NumPy cannot make of the operands is an error of the model."""
    node = call.node
    function = HOST.get((node.domain, node.op))
    if function is None:
        raise unsupported(node, "there is no function for it")
    try:
        return function(call)
    except MISTAKES as problem:
        raise malformed(node, f"it cannot take these operands ({printable(str(problem))})") from problem
