"""Definition -> program: what a term computes, as statements.

    def layer(x: f32[64], w: f32[32, 64]) -> y =              in x: f32[64]
      map(\\row -> reduce(add, 0, map(mul, zip(row, x))), w)   in w: f32[32, 64]
                                                         ->   out y: f32[32]
                                                              for d0<32, d1<64: y[d0] += w[d0, d1] * x[d1]

The term is evaluated with indices for numbers: an array is a function from index to element, so that whatever only
moves elements disappears. Results become ``out`` or, where a parameter has the name, ``inout``; arrays that ``let``
names, and reductions inside arithmetic, become ``temp``. The program is canonical, and verified.
"""

from __future__ import annotations

from dovetail.base.errors import TermError, VerifyError
from dovetail.ir.canonical import canonicalise, interface_order
from dovetail.ir.functional.infer import check
from dovetail.ir.functional.normalise_store import Leaf, Store
from dovetail.ir.functional.normalise_terms import Evaluation
from dovetail.ir.functional.normalise_values import Tuple, Value, default_type
from dovetail.ir.functional.term import Definition
from dovetail.ir.functional.types import Scalar, shape
from dovetail.ir.index import Access, variable
from dovetail.ir.program import Program, Role, Statement, Tensor
from dovetail.ir.verify import verify


def normalise(definition: Definition, typed: bool = False) -> Program:
    """The program that computes what ``definition`` does: canonical and verified. ``typed``: its types are checked."""
    if not typed:
        check(definition)
    try:
        return _normalised(definition, careful=False)
    except VerifyError:
        pass
    try:
        return _normalised(definition, careful=True)
    except VerifyError as error:
        what = f"'{definition.name}' does not become a program: {error.what}"
        hint = "orelse(x, 0) or pad with a number where a value may be none"
        raise TermError(what, where=error.where, why=error.why, hint=hint) from None


def _normalised(definition: Definition, careful: bool) -> Program:
    """A view whose indices may leave its array needs conditions: those are added where ``careful``."""
    store = Store(definition.sizes)
    for param in definition.params:
        extents, element = shape(param.type)
        if not isinstance(element, Scalar):
            raise TermError(f"parameter '{param.name}' has type {param.type}", why="a parameter is an array of numbers")
        store.declare(Tensor(param.role, param.name, element.dtype, extents))
    env = {param.name: store.stored(param.name) for param in definition.params}
    value = Evaluation(store, careful).value(definition.body, env)
    results = value.members if isinstance(value, Tuple) else (value,)
    if len(results) != len(definition.results):
        raise TermError(f"'{definition.name}' names {len(definition.results)} results, its body gives {len(results)}")
    program = canonicalise(_program(definition, store, _write_results(store, definition, results)))
    verify(program)
    return program


def _program(definition: Definition, store: Store, names: dict[str, str]) -> Program:
    """What was stored; ``names`` are temporaries that are results."""
    statements = store.settled_statements()
    for temp, name in names.items():
        old = store.tensors.pop(temp)
        store.declare(Tensor(Role.OUT, name, old.dtype, old.shape))
    statements = [s.rename(names) for s in statements] if names else statements
    temps = (t for t in store.tensors.values() if t.role is Role.TEMP)
    return Program((*_interface(definition, store), *temps), tuple(statements), definition.sizes)


def _interface(definition: Definition, store: Store) -> tuple[Tensor, ...]:
    """Parameters in their order, with results where their order among ``inout`` says."""
    outs = [name for name in definition.results if store.tensors[name].role is Role.OUT]
    both = [name for name in definition.results if store.tensors[name].role is Role.INOUT]
    found: list[str] = []
    for param in definition.params:
        if param.name in both:
            ahead = definition.results[: definition.results.index(param.name)]
            found += [name for name in outs if name in ahead and name not in found]
        found.append(param.name)
    found += [name for name in outs if name not in found]
    return interface_order(store.tensors[name] for name in found)


def _write_results(store: Store, definition: Definition, results: tuple[Value, ...]) -> dict[str, str]:
    """Results that are new first: what a caller's array held may be read until it is written, which comes last.

    Temporaries that hold a whole result are not written again; they are returned with the result's name.
    """
    names: dict[str, str] = {}
    owned = {param.name for param in definition.params if param.role is Role.INOUT}
    pairs = list(zip(definition.results, results, strict=True))
    for name, value in pairs:
        if name not in owned:
            _write_out(store, name, value, names)
    changed = [(name, value) for name, value in pairs if name in owned and not _is_whole(store, name, value)]
    written = [_writes(store, name, value) for name, value in changed]
    copies: list[tuple[str, Value]] = []
    for k, ((name, value), statements) in enumerate(zip(changed, written, strict=True)):
        later = [s for other in written[k + 1 :] for s in other]
        if _reads_elsewhere(store, name, statements) or any(a.tensor == name for s in later for a in s.reads()):
            copies.append((name, store.keep(value)))
        else:
            store.statements += statements
    for name, value in copies:
        store.statements += _writes(store, name, value)
    return names


def _write_out(store: Store, name: str, value: Value, names: dict[str, str]) -> None:
    """A temporary that holds the result already gets its name; anything else is written."""
    if name in store.tensors:
        raise TermError(f"result '{name}' has the name of a parameter", hint=f"inout {name}, or another name")
    held = store.whole(value)
    temp = store.root(held.tensor) if held is not None and not held.indices else None
    if temp is not None and temp not in names and store.tensors[temp].role is Role.TEMP:
        names[temp] = name
        return
    leaf = _leaf(store, name, value)
    dtype = default_type(leaf.cell)
    store.declare(Tensor(Role.OUT, name, dtype, tuple(loop.extent for loop in leaf.loops)))
    cell = leaf.cell
    if any(case.where for case in cell.cases) and not store.is_total(cell):
        cell = store.without_sums(cell)
    store.emit(_access(name, leaf), leaf.loops, cell, dtype)


def _writes(store: Store, name: str, value: Value) -> list[Statement]:
    """The statements that write a result; those of reductions inside it are written at once."""
    leaf = _leaf(store, name, value)
    before = len(store.statements)
    store.emit(_access(name, leaf), leaf.loops, leaf.cell, store.tensors[name].dtype)
    new = store.statements[before:]
    store.statements[before:] = [s for s in new if s.out.tensor != name]
    return [s for s in new if s.out.tensor == name]


def _reads_elsewhere(store: Store, name: str, statements: list[Statement]) -> bool:
    """Whether a statement reads the tensor it writes at another place than the one it writes."""
    reads = ((s, a) for s in statements for a in s.reads() if a.tensor == name)
    return any(not store.same(a, s.out) or s.reduced for s, a in reads)


def _leaf(store: Store, name: str, value: Value) -> Leaf:
    leaves, _ = store.leaves(value)
    if len(leaves) != 1 or isinstance(value, Tuple):
        raise TermError(f"result '{name}' is not an array of numbers")
    return leaves[0]


def _access(name: str, leaf: Leaf) -> Access:
    return Access(name, tuple(variable(loop.name) for loop in leaf.loops))


def _is_whole(store: Store, name: str, value: Value) -> bool:
    """Whether ``value`` is the tensor itself, changed in place."""
    held = store.whole(value)
    return held is not None and store.root(held.tensor) == name and not held.indices
