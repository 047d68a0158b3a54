"""The instructions of a target as patterns, indexed by what a place in a program must look like to be worth a try.

One instruction has several forms:

    reduce  ``acc += a * b``      on a statement with the same ``op=``
    set     ``r = max(a, b)``     on a whole ``=`` statement
    node    ``r = max(a, b)``     on a part of any value
    self    ``r = max(a, b)``     on a whole ``max=`` statement: one operand is what has been reached so far
    chain   ``acc += a * b``      on ``c + a * b`` in a value: the accumulator starts at ``c``
    once    ``acc += a * b``      on ``a * b`` of a ``=`` statement: the accumulator starts at the neutral element
"""

from __future__ import annotations

from dataclasses import dataclass

from dovetail.base.dtypes import DTYPES
from dovetail.ir.expr import Apply, Read
from dovetail.ir.program import Combine, Role
from dovetail.mapping.needle import Needle, read_needle
from dovetail.mapping.typed import Typed
from dovetail.targets.model import Instruction, Target

Key = tuple[str, str, str]
"""Kind of form (with its ``op=``), root of the pattern, dtype it is computed in."""
ALL = frozenset(DTYPES)


@dataclass(frozen=True, slots=True)
class Form:
    """One way to read instructions that differ in nothing but extents: ``pattern`` is what must be found."""

    kind: str
    needle: Needle
    pattern: Typed
    members: tuple[Needle, ...]
    """All that share the form; ``needle`` is the first."""

    @property
    def accumulates(self) -> bool:
        """Its reduction loops may run over reduction loops of the program."""
        return self.kind == "reduce"


@dataclass(frozen=True, slots=True)
class Catalogue:
    """All forms of some of a target's instructions."""

    target: Target
    needles: tuple[Needle, ...]
    forms: dict[Key, tuple[Form, ...]]


def catalogue(target: Target, functions: frozenset[str] | None = None, dtypes: frozenset[str] = ALL) -> Catalogue:
    """Forms of the instructions that apply only ``functions`` (None: any) to only ``dtypes``.

    They are computed once while the target object lives here.
    """
    key = (id(target), functions, dtypes)
    known = _RECENT.get(key)
    if known is None or known.target is not target:
        chosen = target.instructions if functions is None else target.instructions_for(functions, dtypes)
        known = _build(target, chosen)
        if len(_RECENT) >= _MOST_RECENT:
            _RECENT.pop(next(iter(_RECENT)))
        _RECENT[key] = known
    return known


_RECENT: dict[tuple[int, frozenset[str] | None, frozenset[str]], Catalogue] = {}
_MOST_RECENT = 64


def _build(target: Target, instructions: tuple[Instruction, ...]) -> Catalogue:
    needles = tuple(read_needle(instruction, n) for n, instruction in enumerate(instructions))
    shapes: dict[tuple[object, ...], list[Needle]] = {}
    for needle in needles:
        if not needle.refusal:
            shapes.setdefault(_shape(needle), []).append(needle)
    found: dict[Key, list[Form]] = {}
    for members in shapes.values():
        for form in forms_of(tuple(members)):
            kind = f"{form.kind} {form.needle.combine.value}" if form.kind == "reduce" else form.kind
            found.setdefault((kind, form.pattern.root, form.pattern.dtype.name), []).append(form)
    return Catalogue(target, needles, {key: tuple(forms) for key, forms in found.items()})


def _shape(needle: Needle) -> tuple[object, ...]:
    """Equal for instructions that fit the same places, whatever their extents."""
    statement = needle.statement
    program = needle.instruction.program
    names = tuple((loop.name, loop.most > 1) for loop in needle.loops)
    tensors = tuple((t.role, t.name, t.dtype.name) for t in program.tensors)
    simple = all(slot.is_plain for slot in (needle.result, *needle.slots))
    extents = () if simple else tuple((loop.most, loop.granule) for loop in needle.loops)
    return (statement.out, statement.combine, statement.value, names, tensors, extents)


def forms_of(members: tuple[Needle, ...]) -> tuple[Form, ...]:
    """Every way to read instructions of one shape."""
    needle = members[0]
    value = needle.value
    operates = value.root not in ("read", "literal")
    if needle.combine is Combine.SET:
        kinds = ("set", "node", "self") if operates else ("set",)
        return tuple(Form(kind, needle, value, members) for kind in kinds)
    forms = [Form("reduce", needle, value, members)]
    if needle.instruction.program.tensor(needle.result.name).role is Role.INOUT:
        forms.append(Form("chain", needle, _joined(needle), members))
        if operates:
            forms.append(Form("once", needle, value, members))
    return tuple(forms)


def _joined(needle: Needle) -> Typed:
    """``acc + a * b`` of ``acc += a * b``."""
    function = needle.combine.function
    assert function is not None
    start = Typed(Read(needle.result.access), needle.value.dtype, "read")
    expr = Apply(function, (start.expr, needle.value.expr))
    return Typed(expr, needle.value.dtype, function, (start, needle.value))
