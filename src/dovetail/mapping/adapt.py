"""What operands need before an instruction can take them: adapters, derived from the loops bound.

Layout (at most one of these for an operand that is an element of a tensor):
    (nothing)  the innermost bound loop of the instruction's operand walks neighbouring elements of the tensor
    transpose  another of its loops does
    pack       none does, or a fused loop jumps
and besides: broadcast, pad, zero-fill, mask, finite, convert.
"""

from __future__ import annotations

from collections.abc import Mapping

from dovetail.base.dtypes import DType
from dovetail.ir.fit import Adapter
from dovetail.ir.index import Access, affine
from dovetail.mapping.bind import Held
from dovetail.mapping.needle import Slot
from dovetail.mapping.site import Haystack

Bound = Mapping[str, tuple[str, ...]]


def layout_adapters(held: Held, bound: Bound, haystack: Haystack) -> tuple[Adapter, ...]:
    """Broadcast, and transpose or pack, of one operand."""
    slot = held.slot
    used = [name for name in slot.order if bound[name]]
    varying = [name for name in used if not held.varies.isdisjoint(bound[name])]
    found = []
    if len(varying) < len(used):
        constant = [name for name in used if name not in varying]
        found.append(Adapter(slot.name, "broadcast", ", ".join(constant)))
    if held.access is not None and varying:
        kind = _order(slot, held.access, varying, bound, haystack)
        if kind:
            found.append(Adapter(slot.name, kind))
    return tuple(found)


def convert_adapter(held: Held, dtypes: Mapping[str, DType]) -> tuple[Adapter, ...]:
    """A change of dtype on the way in (or out, for a result)."""
    if held.access is None:
        return ()
    have = dtypes[held.access.tensor]
    want = held.slot.dtype
    if have == want:
        return ()
    there, here = (want, have) if isinstance(held.value, Access) else (have, want)
    return (Adapter(held.slot.name, "convert", f"{there} to {here}"),)


def _order(slot: Slot, access: Access, varying: list[str], bound: Bound, haystack: Haystack) -> str:
    """How the tensor's elements lie along the instruction's loops: "", "transpose" or "pack"."""
    steps = {name: _step(access, bound[name], haystack) for name in varying}
    if None in steps.values():
        return "pack"
    innermost: list[str] = []
    for index in reversed(slot.access.indices):
        innermost = [name for name in varying if name in index.names()]
        if innermost:
            if index.is_affine and all(steps[name] == index.coefficient(name) for name in innermost):
                return ""
            break
    return "transpose" if any(steps[name] == 1 for name in varying if name not in innermost) else "pack"


def _step(access: Access, loops: tuple[str, ...], haystack: Haystack) -> int | None:
    """Elements between neighbours along ``loops`` run as one; None when the distance changes on the way."""
    key = (id(access), loops)
    if key not in haystack.steps:
        single = [_single_step(access, loop, haystack) for loop in loops]
        inner = single[-1]
        count = 1
        for loop, step in zip(reversed(loops), reversed(single), strict=True):
            if inner is None or step != inner * count:
                inner = None
                break
            count *= next(hay.extent for hay in haystack.loops if hay.name == loop).evaluate(haystack.probes)
        haystack.steps[key] = inner
    return haystack.steps[key]


def _single_step(access: Access, loop: str, haystack: Haystack) -> int | None:
    """None where ``loop`` stands under a quotient, a remainder or an indirect read."""
    total = 0
    for index, stride in zip(access.indices, haystack.strides[access.tensor], strict=True):
        for atom, c in index.terms:
            if atom == loop:
                total += c * stride
            elif not isinstance(atom, str) and loop in affine(((atom, 1),)).names():
                return None
    return total
