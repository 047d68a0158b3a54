"""What an operator is: a Python function from the types of its operands, and its attributes, to a program's text.

    def relu(x: Type) -> str:                                  "relu" takes one operand and no attribute,
        return "out y: ...; for ...: y[...] = max(x[...], 0)"  and makes one result

The signature is the schema. Positional parameters are the operands, in order, with the names they have in the text;
``b: Type | None = None`` may be left out; ``*x: Type`` is any number of them, called x0, x1, ... Keyword parameters
are the attributes, with their kinds and defaults. The ``out`` declarations of the text are the results. Inputs and
sizes are declared for it; sizes are called Z0, Z1, ... so that no loop can have the name of one.
"""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from math import isnan
from types import NoneType, UnionType
from typing import get_args, get_type_hints

import numpy as np
import numpy.typing as npt

from dovetail.base.errors import OperatorError, ProgramError
from dovetail.ir.graph.graph import Attribute, Node, SmallTensor, Type, show
from dovetail.ir.index import Index, variable
from dovetail.ir.parse import parse
from dovetail.ir.program import Program, Size
from dovetail.ir.verify import verify

Array = npt.NDArray[np.generic]
Ints = tuple[int, ...]
Floats = tuple[float, ...]
_SIZE = re.compile(r"\bZ([0-9]+)\b")
_MEANINGS = 4096
"""How many meanings are kept; a model has a few hundred different ones."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One attribute: what it may be, and what it is where a node does not say."""

    kind: object
    required: bool
    default: Attribute | None


@dataclass(frozen=True, slots=True, eq=False)
class Operator:
    """A named function on tensors."""

    name: str
    function: Callable[..., str]
    operands: tuple[str, ...]
    least: int
    """How many operands there are at least."""
    variadic: bool
    attributes: Mapping[str, Parameter]
    commutative: bool = False
    """Whether the first two operands may be exchanged."""
    run: Callable[..., tuple[Array, ...]] | None = None
    """A host operator: this NumPy function computes it, and ``function`` only declares the results."""

    def settings(self, node: Node) -> dict[str, Attribute | None]:
        """The attributes of ``node``, defaults filled in, each of its kind. Raises an OperatorError."""
        return dict(self.stated(node).values)

    def stated(self, node: Node) -> Settings:
        """``settings`` as they are kept for all nodes that state the same."""
        try:
            return _settings(self, _Given(repr(node.attributes), node.attributes))
        except OperatorError as error:
            raise OperatorError(error.what, where=node.place, why=error.why, hint=error.hint) from None

    def setting(self, name: str, given: Mapping[str, Attribute]) -> Attribute | None:
        """One attribute, where a node states those ``given``; an OperatorError where that cannot be."""
        parameter = self.attributes[name]
        words, accepts = _KINDS[parameter.kind]
        if name not in given:
            if parameter.required:
                raise OperatorError(f"{self.name} needs the attribute '{name}', {words}")
            return parameter.default
        found = accepts(given[name])
        if found is None:
            raise OperatorError(f"attribute '{name}' of {self.name} is {show(given[name])}, not {words}")
        return found

    def parameters(self, count: int) -> tuple[str, ...]:
        """The names of ``count`` operands in the program."""
        if self.variadic:
            *fixed, last = self.operands
            return (*fixed, *(f"{last}{number}" for number in range(count - len(fixed))))
        return self.operands[:count]

    def check_count(self, node: Node) -> None:
        count = len(node.operands)
        if count < self.least or (count > len(self.operands) and not self.variadic):
            least, most = str(self.least), str(len(self.operands))
            wanted = f"at least {least}" if self.variadic else least if least == most else f"{least} to {most}"
            listed = f" ({', '.join(self.operands)})" if self.operands and not self.variadic else ""
            operands = "operand" if wanted.endswith("1") else "operands"
            raise OperatorError(f"{self.name} takes {wanted} {operands}{listed}, not {count}", where=node.place)


@dataclass(frozen=True, slots=True)
class Settings:
    """All attributes of an operator, in its order; ``shown`` tells apart what compares equal: 0.0 and -0.0."""

    shown: str
    values: tuple[tuple[str, Attribute | None], ...] = field(compare=False)


@dataclass(frozen=True, slots=True)
class _Given:
    """Attributes as a node states them."""

    shown: str
    attributes: tuple[tuple[str, Attribute], ...] = field(compare=False)


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a node computes: a program whose inputs are its operands and whose outputs are its results, in order."""

    program: Program
    sizes: Mapping[str, str]
    """The graph's name of each size of the program."""
    results: tuple[Type, ...]


def operator(function: Callable[..., str], name: str = "", commutative: bool = False) -> Operator:
    """The operator that ``function`` defines, by its signature."""
    hints = get_type_hints(function)
    operands, attributes = [], {}
    least, variadic = 0, False
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY:
            required = parameter.default is parameter.empty
            attributes[parameter.name] = Parameter(
                _plain(hints[parameter.name]), required, None if required else parameter.default
            )
            continue
        operands.append(parameter.name)
        variadic = parameter.kind is parameter.VAR_POSITIONAL
        least += variadic or parameter.default is parameter.empty
    name = name or function.__name__.rstrip("_")
    return Operator(name, function, tuple(operands), least, variadic, attributes, commutative)


def operators(*functions: Callable[..., str]) -> tuple[Operator, ...]:
    """The operators that these functions define; a trailing _ keeps a name apart from one of Python's."""
    return tuple(operator(function) for function in functions)


def meaning(known: Operator, node: Node, types: tuple[Type, ...], sizes: Mapping[str, Size]) -> Meaning:
    """What ``node`` computes from operands of these types; raises an OperatorError when it cannot."""
    known.check_count(node)
    settings = known.stated(node)
    used: tuple[Size, ...] = ()
    if sizes:
        names = dict.fromkeys(n for t in types for extent in t.shape for n in sorted(extent.names()))
        used = tuple(sizes[name] for name in names)
    try:
        found = _meaning(known, settings, types, used)
    except OperatorError as error:
        what, why, hint = (_with_names(part, used) for part in (error.what, error.why, error.hint))
        raise OperatorError(what or "", where=node.place, why=why, hint=hint) from None
    if len(found.results) != len(node.results):
        made, named = len(found.results), len(node.results)
        what = f"{known.name} makes {made} result{'' if made == 1 else 's'}, not {named}"
        raise OperatorError(what, where=node.place)
    return found


@lru_cache(maxsize=_MEANINGS)
def _settings(known: Operator, given: _Given) -> Settings:
    for name in (name for name, _ in given.attributes if name not in known.attributes):
        has = f"its attributes: {', '.join(known.attributes)}" if known.attributes else "it has none"
        hint = closest(name, known.attributes)
        raise OperatorError(f"{known.name} has no attribute '{name}'", why=has, hint=hint)
    found = dict(given.attributes)
    values = tuple((name, known.setting(name, found)) for name in known.attributes)
    return Settings(repr(values), values)


@lru_cache(maxsize=_MEANINGS)
def _meaning(known: Operator, settings: Settings, types: tuple[Type, ...], used: tuple[Size, ...]) -> Meaning:
    forth: dict[str, Index] = {size.name: variable(f"Z{number}") for number, size in enumerate(used)}
    plain = [resized(t, forth) for t in types]
    names = known.parameters(len(types))
    lines = [f"size Z{number} in {size.low}..{size.high}" for number, size in enumerate(used)]
    lines += [f"in {name}: {t}" for name, t in zip(names, plain, strict=True)]
    try:
        program = parse("\n".join([*lines, known.function(*plain, **dict(settings.values))]), known.name)
        if known.run is None:
            verify(program)
    except ProgramError as error:
        given = ", ".join(map(str, plain)) or "nothing"
        raise OperatorError(f"{known.name} cannot take {given}", why=error.what) from None
    back = {f"Z{number}": size.name for number, size in enumerate(used)}
    renames = {old: variable(new) for old, new in back.items()}
    results = tuple(resized(Type(t.dtype, t.shape), renames) for t in program.outputs)
    return Meaning(program, back, results)


def _with_names(text: str | None, used: tuple[Size, ...]) -> str | None:
    """A message about Z0, Z1, ... in the graph's own words."""
    return text and _SIZE.sub(lambda found: used[int(found.group(1))].name, text)


def resized(t: Type, sizes: Mapping[str, Index]) -> Type:
    """``t`` with sizes replaced."""
    return Type(t.dtype, tuple(extent.substitute(sizes) for extent in t.shape)) if sizes else t


def find(node: Node, operators: Mapping[str, Operator]) -> Operator:
    """The operator ``node`` names."""
    if node.op not in operators:
        hint = closest(node.op, operators)
        raise OperatorError(f"unknown operator '{node.op}'", where=node.place, hint=hint)
    return operators[node.op]


def closest(name: str, known: Iterable[str]) -> str | None:
    close = difflib.get_close_matches(name, sorted(known), 1)
    return f"did you mean '{close[0]}'?" if close else None


def _plain(hint: object) -> object:
    """``Ints | None`` -> ``Ints``."""
    if isinstance(hint, UnionType):
        (hint,) = (part for part in get_args(hint) if part is not NoneType)
    assert hint in _KINDS, f"an attribute cannot be a {hint}"
    return hint


def _whole(value: Attribute) -> int | None:
    return value if isinstance(value, int) else None


def _number(value: Attribute) -> float | None:
    return float(value) if isinstance(value, int | float) and not isnan(value) else None


def _text(value: Attribute) -> str | None:
    return value if isinstance(value, str) else None


def _whole_numbers(value: Attribute) -> Ints | None:
    if not isinstance(value, tuple):
        return None
    found = tuple(v for v in value if isinstance(v, int))
    return found if len(found) == len(value) else None


def _numbers(value: Attribute) -> Floats | None:
    return tuple(map(float, value)) if isinstance(value, tuple) and not any(map(isnan, value)) else None


def _tensor(value: Attribute) -> SmallTensor | None:
    return value if isinstance(value, SmallTensor) else None


_KINDS: Mapping[object, tuple[str, Callable[[Attribute], Attribute | None]]] = {
    int: ("a whole number", _whole),
    float: ("a number", _number),
    str: ("a text", _text),
    Ints: ("a list of whole numbers", _whole_numbers),
    Floats: ("a list of numbers", _numbers),
    SmallTensor: ("a small tensor", _tensor),
}
