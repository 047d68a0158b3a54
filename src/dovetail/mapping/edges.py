"""Points of a call that are not points of the program: past the end of a loop (padding), or removed by a guard.

They must reach no live element, or contribute the neutral element. A padded or guarded point of an output loop is
dropped with its element; one of a reduction is filled, and where filling cannot make it neutral there is no fit.
"""

from __future__ import annotations

from dataclasses import dataclass

from dovetail.ir.expr import Read
from dovetail.ir.fit import Adapter
from dovetail.ir.index import Condition
from dovetail.ir.program import Combine
from dovetail.mapping.bind import Binding, Held
from dovetail.mapping.catalogue import Form
from dovetail.mapping.needle import Needle
from dovetail.mapping.neutral import Fill, neutral_fill
from dovetail.mapping.site import Haystack, Site


@dataclass(frozen=True, slots=True)
class Unsound:
    """Why points that are not there cannot be kept from contributing: ``cause`` names what makes them."""

    cause: str
    blocking: str
    """The operand that would have to be finite, when that would help."""


Edges = tuple[Adapter, ...] | Unsound


def padded_loops(needle: Needle, binding: Binding, haystack: Haystack) -> tuple[int, ...]:
    """Numbers of the instruction's loops that calls do not fill exactly, whatever the run-time sizes are."""
    found = []
    for number, (loop, loops) in enumerate(zip(needle.loops, binding, strict=True)):
        factor = 1
        for name in loops:
            factor *= haystack.contents[name]
        if factor % loop.granule:
            found.append(number)
    return tuple(found)


def pad_adapters(form: Form, padded: tuple[int, ...], finite: bool) -> Edges:
    """Padding of every operand along the loops numbered ``padded``, with what a reduction is filled with."""
    found: dict[str, list[str]] = {}
    promised: list[Adapter] = []
    for loop in (form.needle.loops[number] for number in padded):
        values: dict[str, int | float | bool] = {}
        if loop.name in form.needle.reduced:
            answer = _filled(form, frozenset((loop.name,)), frozenset(), finite, f"padding of {loop.name}", "")
            if isinstance(answer, Unsound):
                return answer
            values = dict(answer[0])
            promised += answer[1]
        for slot in (form.needle.result, *form.needle.slots):
            if loop.name in slot.loops:
                text = f"{loop.name} with {values[slot.name]}" if slot.name in values else loop.name
                found.setdefault(slot.name, []).append(text)
    pads = tuple(Adapter(name, "pad", ", ".join(dict.fromkeys(texts))) for name, texts in found.items())
    return (*pads, *dict.fromkeys(promised))


def guard_adapters(form: Form, site: Site, held: tuple[Held, ...], binding: Binding, finite: bool) -> Edges:
    """Zero-filled operands and masked results for guards that tell points of one call apart."""
    statement = site.haystack.statement
    everything = {name for loops in binding for name in loops}
    fills: dict[str, dict[str, None]] = {}
    promised: list[Adapter] = []
    for condition in statement.where:
        inside = condition.names() & everything
        if not inside:
            continue
        readers = [h.slot.name for h in held if h.varies & inside]
        values: dict[str, int | float | bool] = {}
        if _drops_elements(site, condition):
            if site.result is not None:
                fills.setdefault(f"mask {form.needle.result.name}", {})[str(condition)] = None
        else:
            touched = frozenset(
                loop.name for loop, loops in zip(form.needle.loops, binding, strict=True) if inside & set(loops)
            )
            answer = _filled(
                form, touched, frozenset(readers), finite, f"the guard {condition}", _kept(form, site, held)
            )
            if isinstance(answer, Unsound):
                return answer
            values = dict(answer[0])
            promised += answer[1]
        for name in dict.fromkeys((*readers, *values)):
            extreme = values.get(name, 0)
            text = f"{condition}" if not extreme else f"{condition} with {extreme}"
            fills.setdefault(f"zero-fill {name}", {})[text] = None
    adapters = (Adapter(key.split(" ", 1)[1], key.split(" ", 1)[0], ", ".join(texts)) for key, texts in fills.items())
    return (*adapters, *dict.fromkeys(promised))


def _drops_elements(site: Site, condition: Condition) -> bool:
    """Whether a false ``condition`` removes whole elements of the result, not single contributions to them."""
    statement = site.haystack.statement
    if site.result is None or statement.combine is Combine.SET:
        return True
    loops = {loop.name for loop in statement.all_loops}
    return (condition.names() & loops) <= site.result.names()


def _filled(
    form: Form, loops: frozenset[str], readers: frozenset[str], finite: bool, cause: str, keeps: str
) -> tuple[Fill, list[Adapter]] | Unsound:
    """What makes points of ``loops`` neutral: operands that can tell those points apart, readers first."""
    needle = form.needle
    able = frozenset(slot.name for slot in needle.slots if loops <= slot.determined)
    for chosen in dict.fromkeys((able & readers, able)):
        fill = _neutral(form, chosen, keeps, False)
        if fill is not None:
            return fill, []
    others = [slot.name for slot in needle.slots if slot.name not in able]
    fill = _neutral(form, able, keeps, True)
    if fill is None:
        return Unsound(cause, "")
    if not finite:
        return Unsound(cause, others[0])
    return fill, [Adapter(name, "finite", f"for {cause}") for name in others]


def _neutral(form: Form, fillable: frozenset[str], keeps: str, finite: bool) -> Fill | None:
    needle = form.needle
    dtypes = tuple((slot.name, slot.dtype) for slot in needle.slots)
    return neutral_fill(needle.value, dtypes, needle.combine, needle.result.dtype, fillable, keeps, finite)


def _kept(form: Form, site: Site, held: tuple[Held, ...]) -> str:
    """The operand that carries the result so far, when there is one."""
    if form.kind != "self" or site.result is None:
        return ""
    return next(h.slot.name for h in held if h.value == Read(site.result))
