"""What is known of functions by their spelling alone: associative, neutral elements, linear. Unknown means False."""

from __future__ import annotations

from dovetail.ir.functional.patterns import missing
from dovetail.ir.functional.term import Call, Lambda, Literal, Pattern, Places, Scalar, Term, Var, free_names, walk
from dovetail.rewrite.build import applied

ASSOCIATIVE = frozenset({"add", "mul", "max", "min", "and", "or", "xor"})
IDEMPOTENT = frozenset({"max", "min", "and", "or"})
NEUTRAL: dict[str, float] = {
    "add": 0, "mul": 1, "or": 0, "xor": 0, "max": float("-inf"), "min": float("inf"),
}  # fmt: skip
DISTRIBUTES = frozenset({("mul", "add"), ("mul", "sub"), ("add", "max"), ("add", "min")})


def associative(function: Term) -> bool:
    """Up to rounding where it adds or multiplies floats."""
    return _operation(function) in ASSOCIATIVE


def commutative(function: Term) -> bool:
    """All associative functions we know are."""
    return associative(function)


def idempotent(function: Term) -> bool:
    return _operation(function) in IDEMPOTENT


def neutral(function: Term, value: Term) -> bool:
    """Whether ``value`` is the neutral element, or copies of it where the function is lifted over arrays."""
    while isinstance(value, Pattern) and value.name == "repeat" and len(value.args) == 1:
        value = value.args[0]
    operation = _operation(function)
    return isinstance(value, Literal) and value.value is not None and NEUTRAL.get(operation) == value.value


def distributes(function: Term, over: Term) -> bool:
    return (_operation(function), _operation(over)) in DISTRIBUTES


def linear(function: Term) -> bool:
    """Whether a function of one value is linear in it."""
    body = applied(function, (Var("%a"),)) if _takes(function, 1) else None
    return body is not None and _degree(body, "%a")


def bilinear(function: Term) -> bool:
    """Whether a function of two values is linear in each."""
    body = applied(function, (Var("%a"), Var("%b"))) if _takes(function, 2) else None
    return body is not None and _product(body, "%a", "%b")


def total(term: Term) -> bool:
    """Whether nothing is left out that was there: no ``none``, and no place that a condition keeps away."""
    return not any(_leaves_out(part) for part in walk(term))


def _leaves_out(term: Term) -> bool:
    match term:
        case Literal(value):
            return value is None
        case Pattern("view", (Places() as places,), _):
            return bool(places.where)
        case Pattern("scatter", _, _):
            return True
    return False


def strict(function: Term) -> bool:
    """Whether a function gives none where a value is none: it looks at all of them, and nothing passes over one."""
    names = [f"%{k}" for k in range(_count(function))]
    body = applied(function, tuple(map(Var, names))) if names else None
    return body is not None and all(_needs(body, name) for name in names)


def _needs(term: Term, name: str) -> bool:
    """Whether every number in ``term`` is none where the variable is."""
    match term:
        case Var(found):
            return found == name
        case Scalar(function, args) if function not in ("orelse", "select"):
            return any(_needs(arg, name) for arg in args)
        case Pattern("map", (), (Lambda(_, body) as function, data)):
            return _needs(body, name) or (strict(function) and _needs(data, name))
        case Pattern("map", (), (function, data)):
            return strict(function) and _needs(data, name)
        case Pattern("split" | "join" | "transpose" | "slide" | "slice" | "repeat" | "to" | "get", _, (data,)):
            return _needs(data, name)
        case Pattern("tuple" | "zip" | "array", (), args):
            return all(_needs(arg, name) for arg in args)
    return False


def _operation(function: Term) -> str:
    """The primitive that a function is, maybe lifted over arrays: ``\\\\a b -> map(add, zip(a, b))``."""
    match function:
        case Scalar(name, ()):
            return name
        case Lambda((a, b), Pattern("map", (), (inner, Pattern("zip", (), (Var(c), Var(d)))))) if (a, b) == (c, d):
            return _operation(inner)
        case Lambda((a, b), Scalar(name, (Var(c), Var(d)))) if (a, b) == (c, d):
            return name
    return ""


def _count(function: Term) -> int:
    """How many values a function takes."""
    return len(function.params) if isinstance(function, Lambda) else missing(function)


def _takes(function: Term, count: int) -> bool:
    return len(function.params) == count if isinstance(function, Lambda) else isinstance(function, Scalar | Pattern)


def _degree(term: Term, name: str) -> bool:
    """Whether ``term`` is linear in the variable ``name``."""
    match term:
        case Var(found):
            return found == name
        case Scalar("add" | "sub", (a, b)):
            return _degree(a, name) and _degree(b, name)
        case Scalar("neg", (a,)):
            return _degree(a, name)
        case Scalar("mul", (a, b)):
            return (_degree(a, name) and name not in free_names(b)) or (_degree(b, name) and name not in free_names(a))
        case Pattern("map", (), (function, data)):
            return name not in free_names(function) and linear(function) and _degree(data, name)
        case Pattern("reduce", (), (Scalar("add", ()), Literal(0), data)):
            return _degree(data, name)
        case Pattern("split" | "join" | "transpose" | "slide" | "slice" | "repeat", _, (data,)):
            return _degree(data, name)
    return False


def _product(term: Term, a: str, b: str) -> bool:
    """Whether ``term`` is linear in ``a`` and in ``b``."""
    match term:
        case Scalar("mul", (x, y)):
            return _either(x, y, a, b) or _scaled(x, y, a, b) or _scaled(y, x, a, b)
        case Scalar("add" | "sub", (x, y)):
            return _product(x, a, b) and _product(y, a, b)
        case Scalar("neg", (x,)):
            return _product(x, a, b)
        case Pattern("reduce", (), (function, start, data)):
            return _operation(function) == "add" and neutral(function, start) and _product(data, a, b)
        case Pattern("map", (), (function, Pattern("zip", (), (x, y)))):
            return not free_names(function) & {a, b} and bilinear(function) and _either(x, y, a, b)
        case Pattern("map", (), (function, data)) if not free_names(function) & {a, b}:
            return linear(function) and _product(data, a, b)
        case Pattern("map", (), (Lambda((p,), body), data)) if a not in free_names(body):
            return _degree(data, a) and _product(body, p, b)
        case Pattern("map", (), (Lambda((p,), body), data)) if b not in free_names(body):
            return _degree(data, b) and _product(body, a, p)
        case Call(function, (x, y)):
            return bilinear(function) and _either(x, y, a, b)
    return False


def _scaled(factor: Term, rest: Term, a: str, b: str) -> bool:
    return not free_names(factor) & {a, b} and _product(rest, a, b)


def _either(x: Term, y: Term, a: str, b: str) -> bool:
    return (_only(x, a, b) and _only(y, b, a)) or (_only(x, b, a) and _only(y, a, b))


def _only(term: Term, name: str, other: str) -> bool:
    return other not in free_names(term) and _degree(term, name)
