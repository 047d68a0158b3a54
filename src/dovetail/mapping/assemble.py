"""From a unification and the loops bound to ``Fit``s: operands, adapters and the transformations that were used."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from dovetail.ir.expr import Literal
from dovetail.ir.fit import Adapter, Fit, LoopBinding, OperandBinding
from dovetail.mapping.adapt import convert_adapter, layout_adapters
from dovetail.mapping.bind import Binding, Held, Numbers, elements_agree, plainly_agree
from dovetail.mapping.catalogue import Form
from dovetail.mapping.edges import Edges, Unsound, guard_adapters, pad_adapters, padded_loops
from dovetail.mapping.needle import Needle
from dovetail.mapping.site import Site
from dovetail.mapping.unify import Match

TRANSFORMATIONS = (
    "split",
    "fuse",
    "reorder",
    "broadcast",
    "pad",
    "commute",
    "insert temporary",
    "insert identity",
)


@dataclass(frozen=True, slots=True)
class Known:
    """What has been worked out already: much depends on few of the loops, or not on the instruction's extents."""

    bindings: dict[tuple[int, tuple[int, ...]], LoopBinding] = field(default_factory=dict)
    layouts: dict[tuple[int, Binding], tuple[Adapter, ...]] = field(default_factory=dict)
    guards: dict[Binding, Edges] = field(default_factory=dict)
    pads: dict[tuple[int, tuple[int, ...]], Edges] = field(default_factory=dict)
    transformations: dict[tuple[bool, ...], tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Assembler:
    """Builds the fits of one unification."""

    form: Form
    site: Site
    match: Match
    held: tuple[Held, ...]
    result: tuple[Held, ...]
    finite: bool
    operands: tuple[OperandBinding, ...]
    known: Known = field(default_factory=Known, compare=False, repr=False)

    def fits(self, numbers: Numbers) -> Iterator[tuple[Needle, Fit | Unsound]]:
        """For each instruction of the form, its fit over the loops with these numbers, or why it would be wrong."""
        haystack = self.site.haystack
        binding = tuple(tuple([haystack.loops[n].name for n in group]) for group in numbers)
        guards = self._guards(binding)
        layouts = self._layouts(binding)
        loops = tuple([self._binding(number, group, binding) for number, group in enumerate(numbers)])
        plain = plainly_agree(self.form.needle, self.site, self.held, binding)
        for needle in self.form.members:
            if not plain and not elements_agree(needle, self.site, self.held, binding):
                continue
            pads = self._pads(needle, binding)
            if isinstance(guards, Unsound):
                yield needle, guards
            elif isinstance(pads, Unsound):
                yield needle, pads
            else:
                adapters = (*layouts, *pads, *guards)
                used = self._transformations(needle, numbers, adapters)
                name = needle.instruction.name
                yield needle, Fit(haystack.number, self.site.node, name, loops, self.operands, adapters, used)

    def _binding(self, number: int, group: tuple[int, ...], binding: Binding) -> LoopBinding:
        key = (number, group)
        if key not in self.known.bindings:
            self.known.bindings[key] = LoopBinding(self.form.needle.loops[number].name, binding[number])
        return self.known.bindings[key]

    def _guards(self, binding: Binding) -> Edges:
        where = self.site.haystack.statement.where
        if not where:
            return ()
        touched = frozenset[str]().union(*(c.names() for c in where))
        key = tuple(tuple(name for name in names if name in touched) for names in binding)
        if key not in self.known.guards:
            self.known.guards[key] = guard_adapters(self.form, self.site, self.held, binding, self.finite)
        return self.known.guards[key]

    def _pads(self, needle: Needle, binding: Binding) -> Edges:
        padded = padded_loops(needle, binding, self.site.haystack)
        key = (needle.number, padded)
        if key not in self.known.pads:
            self.known.pads[key] = pad_adapters(self.form, padded, self.finite)
        return self.known.pads[key]

    def _layouts(self, binding: Binding) -> list[Adapter]:
        """Layout and dtype of the result and of every operand."""
        haystack = self.site.haystack
        bound = {loop.name: names for loop, names in zip(self.form.needle.loops, binding, strict=True)}
        found: list[Adapter] = []
        for number, held in enumerate((*self.result, *self.held)):
            key = (number, tuple([bound[name] for name in held.slot.order]))
            if key not in self.known.layouts:
                converted = convert_adapter(held, haystack.dtypes)
                self.known.layouts[key] = (*layout_adapters(held, bound, haystack), *converted)
            found += self.known.layouts[key]
        return found if self.form.kind != "chain" else list(dict.fromkeys(found))

    def _transformations(self, needle: Needle, numbers: Numbers, adapters: tuple[Adapter, ...]) -> tuple[str, ...]:
        haystack = self.site.haystack
        kinds = [adapter.kind for adapter in adapters]
        inner: list[int] = []
        split = fuse = False
        for group, loop in zip(numbers, needle.loops, strict=True):
            inner += group
            fuse = fuse or len(group) > 1
            split = split or _splits(haystack.extents, group, loop.most)
        used = (
            split,
            fuse,
            inner != list(range(len(haystack.loops) - len(inner), len(haystack.loops))),
            "broadcast" in kinds,
            "pad" in kinds,
            self.match.commuted,
            self.match.temporaries > 0,
            self.match.identities > 0 or self.form.kind == "once",
        )
        if used not in self.known.transformations:
            chosen = zip(TRANSFORMATIONS, used, strict=True)
            self.known.transformations[used] = tuple(name for name, yes in chosen if yes)
        return self.known.transformations[used]


def assembler(form: Form, site: Site, match: Match, held: tuple[Held, ...], finite: bool) -> Assembler:
    """Ready to build fits of ``form`` at ``site``."""
    result = () if site.result is None else (Held(form.needle.result, site.result, site.result.names()),)
    return Assembler(form, site, match, held, result, finite, _bound_operands(form, site, match))


def _bound_operands(form: Form, site: Site, match: Match) -> tuple[OperandBinding, ...]:
    """The result (as an access), what the accumulator starts from, and what is read."""
    needle = form.needle
    found = []
    if site.result is not None:
        found.append(OperandBinding(needle.result.name, site.result))
    if form.kind == "once":
        found.append(OperandBinding(needle.result.name, Literal(needle.combine.neutral(needle.result.dtype))))
    return (*found, *(OperandBinding(name, value) for name, value in match.operands))


def _splits(extents: tuple[int, ...], group: tuple[int, ...], most: int) -> bool:
    extent = 1
    for number in group:
        extent *= extents[number]
    return extent > most
