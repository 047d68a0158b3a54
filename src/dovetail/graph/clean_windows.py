"""Rules about padding before windows, and about biases behind sums of products."""

from __future__ import annotations

from collections.abc import Mapping

from dovetail.graph.clean_rule import CleanRule, numbers, settings
from dovetail.graph.sheet import Sheet
from dovetail.ir.graph.graph import Attribute, Node
from dovetail.ir.index import ONE

_LOWEST = float("-inf")


def _padded(sheet: Sheet, node: Node) -> str | None:
    """Padding around spatial axes is part of the window's own."""
    made = sheet.made_by(node.operands[0], "pad")
    if made is None:
        return None
    pad, own = settings(sheet, made), settings(sheet, node)
    rank = sheet.types[made.operands[0]].rank
    around = numbers(pad["pads"])
    ends = (*around[:2], *around[rank : rank + 2])
    if pad["mode"] != "constant" or any(ends) or pad["value"] != (_LOWEST if node.op == "max_pool" else 0.0):
        return None
    more = _more(node, own)
    if more is None:
        return None
    spatial = (*around[2:rank], *around[rank + 2 :])
    pads = numbers(own["pads"]) or (0,) * len(spatial)
    total = tuple(a + b for a, b in zip(pads, spatial, strict=True))
    attributes = {**dict(node.attributes), **more, "pads": total}
    return sheet.add(node.op, made.operands[0], *node.operands[1:], **attributes)


def _more(node: Node, own: Mapping[str, Attribute | None]) -> Mapping[str, Attribute] | None:
    """What else a node has to say when padding becomes its own; None where it cannot."""
    if node.op != "average_pool":
        return {}
    counted = own["count_include_pad"] == 1 or not any(numbers(own["pads"]))
    return {"count_include_pad": 1} if counted and not own["ceil_mode"] else None


def _bias(sheet: Sheet, node: Node) -> str | None:
    """What is added to each channel of a convolution is its bias."""
    for layer, added in (node.operands, reversed(node.operands)):
        made = sheet.made_by(layer, "conv", "conv_transpose")
        array = sheet.array(added)
        if made is None or array is None or len(made.operands) > 2 or sheet.uses(layer) > 1:
            continue
        t, rank = sheet.types[added], sheet.types[layer].rank
        shape = (*(ONE,) * (rank - t.rank), *t.shape)
        channels = sheet.types[layer].shape[1]
        others = (*shape[:1], *shape[2:])
        if t.rank > rank or any(extent != ONE for extent in others) or shape[1] != channels:
            continue
        if t.dtype != sheet.types[made.operands[1]].dtype or sheet.types[layer] != sheet.types[node.results[0]]:
            continue
        return sheet.add(made.op, *made.operands, sheet.constant(array.reshape(-1), t), **dict(made.attributes))
    return None


WINDOWS = (
    CleanRule("padded", ("conv", "max_pool", "average_pool"), _padded, "a window leaves out what is outside by itself"),
    CleanRule("bias", ("add",), _bias, "a number for each channel is the convolution's bias"),
)
