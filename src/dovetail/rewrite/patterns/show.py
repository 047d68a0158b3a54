"""Forms -> their text: what ``text`` reads; what several parts read has a name."""

from __future__ import annotations

from collections import Counter

from dovetail.rewrite.graph_text import AnyAttribute, AttributeTerm, FixedAttribute
from dovetail.rewrite.patterns.form import Chain, Each, Form, Hole, Item, Number, Operation, Part, Result, reads


def show_form(form: Form) -> str:
    """One line; the same for forms that differ in the order of their parts alone."""
    writer = _Writer(form)
    sinks = ", ".join([writer.part(sink) for sink in form.sinks])
    return "  ".join([*writer.lines, sinks])


class _Writer:
    """``lines`` are the names given so far."""

    def __init__(self, form: Form) -> None:
        self.form = form
        self.lines: list[str] = []
        self._names: dict[int, str] = {}
        self._reads = Counter(place for part in form.parts for place in reads(part))

    def part(self, place: int) -> str:
        part = self.form.parts[place]
        if place in self._names:
            return self._names[place]
        if isinstance(part, Result):
            return f"{self._several(part.operation)}_{part.number}"
        text = self._written(part)
        if self._reads[place] > 1 and isinstance(part, Operation | Chain):
            self._names[place] = f"v{len(self._names)}"
            self.lines.append(f"{self._names[place]} = {text}")
            return self._names[place]
        return text

    def _several(self, place: int) -> str:
        """What the results of an operation are called, but for their numbers."""
        if place not in self._names:
            part = self.form.parts[place]
            assert isinstance(part, Operation)
            text = self._written(part)
            name = self._names[place] = f"v{len(self._names)}"
            made = ", ".join(f"{name}_{number}" for number in range(part.results))
            self.lines.append(f"{made} = {text}")
        return self._names[place]

    def _written(self, part: Part) -> str:
        match part:
            case Hole(name):
                return f"?{name}"
            case Item(name):
                return f"each(?{name})"
            case Number(value):
                return repr(value)
            case Each(form):
                return f"each({show_form(form)})"
            case Chain(count, least, start, previous, step):
                steps = f"?{count}" if least == 1 else f"?{count} >= {least}"
                return f"repeat({steps}, ?{previous} = {self.part(start)}, {show_form(step)})"
            case Operation(op, operands, attributes, _):
                text = f"{op}({', '.join([self.part(one) for one in operands])})"
                if attributes:
                    text += f"{{{', '.join(f'{name} = {_attribute(term)}' for name, term in attributes)}}}"
                return text
        raise AssertionError("results have the names of what makes them")


def _attribute(term: AttributeTerm) -> str:
    match term:
        case AnyAttribute(name):
            return f"?{name}"
        case FixedAttribute(value):
            return f'"{value}"' if isinstance(value, str) else repr(value)
    return f"{term.function}({', '.join(map(_attribute, term.args))})"
