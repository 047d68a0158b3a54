"""Types of parameters, run-time sizes, and the decorator that makes a definition of a Python function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from dovetail.base.dtypes import DTYPES
from dovetail.base.errors import TermError
from dovetail.frontends.functional.value import Extent, Operand, Value, body_of, parameters, scalar, used
from dovetail.ir.functional.infer import check
from dovetail.ir.functional.simplify import simplify
from dovetail.ir.functional.term import Definition, Param
from dovetail.ir.functional.types import Scalar, Type, array
from dovetail.ir.index import as_index, variable
from dovetail.ir.program import Role, Size


@dataclass(frozen=True, slots=True)
class Spec:
    """The type and role of a parameter."""

    type: Type
    extents: tuple[Extent, ...] = ()
    role: Role = Role.IN


@dataclass(frozen=True, slots=True)
class Element:
    """A dtype: ``f32[8, n]`` is the type of an array, ``f32(x)`` a cast."""

    name: str

    def __getitem__(self, sizes: Extent | int | tuple[Extent | int, ...]) -> Spec:
        given = sizes if isinstance(sizes, tuple) else (sizes,)
        indices = tuple(size.index if isinstance(size, Extent) else as_index(size) for size in given)
        extents = tuple(size for size in given if isinstance(size, Extent))
        return Spec(array(indices, Scalar(DTYPES[self.name])), extents)

    def __call__(self, value: Operand) -> Value:
        return scalar(self.name, value)


boolean = Element("bool")
i8, i16, i32, i64 = (Element(f"i{bits}") for bits in (8, 16, 32, 64))
u8, u16, u32, u64 = (Element(f"u{bits}") for bits in (8, 16, 32, 64))
f8e4m3fn, f16, bf16, f32, f64 = (Element(name) for name in ("f8e4m3fn", "f16", "bf16", "f32", "f64"))


def size(name: str, low: int, high: int) -> Extent:
    """A size that is known when the compiled function is called, from ``low`` to ``high``."""
    return Extent(variable(name), (Size(name, low, high),))


def const(spec: Spec) -> Spec:
    """A parameter that is the same at every call: weights."""
    return replace(spec, role=Role.CONST)


def inout(spec: Spec) -> Spec:
    """A parameter that the result of the same name writes."""
    return replace(spec, role=Role.INOUT)


def function(results: str = "y", /, **params: Spec | Element) -> Callable[[Callable[..., Value]], Definition]:
    """A decorator: the definition that a Python function describes, checked and simplified.

    ``params`` are the types of its parameters, in their order; ``results`` are the names of what it gives, with commas.
    """

    def define(build: Callable[..., Value]) -> Definition:
        name = getattr(build, "__name__", "f")
        if parameters(build) != tuple(params):
            has, given = (", ".join(names) for names in (parameters(build), params))
            raise TermError(f"'{name}' has the parameters {has}", why=f"there are types for {given}")

        def body(*values: Value) -> Value:
            for spec in specs:
                for extent in spec.extents:
                    used(extent)
            return build(*values)

        specs = [p if isinstance(p, Spec) else Spec(Scalar(DTYPES[p.name])) for p in params.values()]
        names, term, frame = body_of(tuple(params), body)
        declared = tuple(Param(s.role, n, s.type) for n, s in zip(names, specs, strict=True))
        found = tuple(result.strip() for result in results.split(","))
        definition = Definition(name, declared, found, simplify(term), tuple(frame.sizes.values()))
        check(definition)
        return definition

    return define
