"""Text of patterns -> forms.

    form   = (name, ... "=" value)* value, ...                           the last values are what the pattern makes
    value  = "?" name | number | name | operator "(" value, ... ")" ["{" name "=" attribute, ... "}"]
           | "repeat" "(" "?" n [">=" least] "," "?" h "=" value "," (name, ... "=" value)* value ")"
           | "each" "(" value ")"

    mul(?x, sigmoid(?x))
    s = sigmoid(?x)  mul(s, add(s, 1.0))
    repeat(?n, ?h = ?x, add(?h, each(?b)))                               ?h is the step before, ?x the first
    a, b = split(?x){sizes = (?n, ?m), axis = 1}  mul(a, sigmoid(b))

Attributes are written as in rules about operators (``graph_text``).
"""

from __future__ import annotations

from dovetail.base.errors import ParseError, PatternError
from dovetail.ir.tokens import Source, Token
from dovetail.rewrite.graph_text import GraphReader
from dovetail.rewrite.patterns.form import Chain, Each, Form, FormBuilder, Hole, Item, Number, Operation, Result

REPEAT, EACH = "repeat", "each"


def parse_form(text: str, name: str = "pattern") -> Form:
    """The form that ``text`` describes; ``name`` stands for it in messages. Raises a PatternError."""
    try:
        reader = _FormReader(Source(text, name))
        return reader.whole_text(reader.form)
    except ParseError as problem:
        raise PatternError(problem.what, where=problem.where, why=problem.why, hint=problem.hint) from None


class _FormReader(GraphReader):
    """Recursive descent; ``scopes`` are the forms that are being read, the innermost last."""

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self._scopes: list[tuple[FormBuilder, dict[str, int]]] = []
        self._in_step = False

    def form(self) -> Form:
        self._scopes.append((FormBuilder(), {}))
        while self._assignment():
            pass
        sinks = [self.part()]
        while self.accept(","):
            sinks.append(self.part())
        return self._closed(*sinks)

    def part(self) -> int:
        """The place of a value among the parts of the form that is being read."""
        builder, names = self._scopes[-1]
        token = self.take()
        if token.kind == "meta":
            return builder.add(Hole(token.text[1:]))
        if token.kind == "number" or token.text == "-":
            return builder.add(Number(self._number(token)))
        if token.kind != "name":
            raise self.error("expected an operator, ?x or a number", token)
        if self.here.text != "(":
            if token.text not in names:
                raise self.refusal(f"nothing above is called '{token.text}'", token)
            return names[token.text]
        self.expect("(")
        if token.text == REPEAT:
            return self.inside(lambda: self._repeat(token), ")")
        if token.text == EACH:
            return self.inside(self._each, ")")
        return builder.add(self._operation(token, 1))

    def _operation(self, token: Token, results: int) -> Operation:
        operands: list[int] = []
        while not self.accept(")"):
            operands.append(self.inside(self.part))
            if not self.accept(","):
                self.expect(")")
                break
        return Operation(token.text, tuple(operands), self.attributes() if self.accept("{") else (), results)

    def _assignment(self) -> bool:
        """``a, b = operator(...)``; False, with nothing read, where something else follows."""
        start, found = self.at, [self.take()]
        while self.accept(","):
            found.append(self.take())
        if any(token.kind != "name" for token in found) or not self.accept("="):
            self.at = start
            return False
        builder, names = self._scopes[-1]
        for token in found:
            if token.text in names or [one.text for one in found].count(token.text) > 1:
                raise self.refusal(f"'{token.text}' is made twice", token)
        if len(found) == 1:
            names[found[0].text] = self.part()
            return True
        token = self.take()
        if token.kind != "name" or token.text in (REPEAT, EACH):
            raise self.error("expected an operator that makes several values", token)
        self.expect("(")
        made = builder.add(self._operation(token, len(found)))
        names.update((one.text, builder.add(Result(made, number))) for number, one in enumerate(found))
        return True

    def _repeat(self, token: Token) -> int:
        if self._in_step:
            raise self.refusal("a repetition inside a repetition", token)
        count = self._meta("the number of steps")
        least = self.integer() if self.accept(">=") else 1
        self.expect(",")
        previous = self._meta("what a step calls the one before it")
        self.expect("=")
        start = self.part()
        self.expect(",")
        self._scopes.append((FormBuilder(), {}))
        self._in_step = True
        while self._assignment():
            pass
        step = self._closed(self.part())
        self._in_step = False
        return self._scopes[-1][0].add(Chain(count, least, start, previous, step))

    def _each(self) -> int:
        if not self._in_step:
            self._scopes.append((FormBuilder(), {}))
            return self._scopes[-2][0].add(Each(self._closed(self.part())))
        name = self._meta("a hole of which every step has its own")
        return self._scopes[-1][0].add(Item(name))

    def _closed(self, *sinks: int) -> Form:
        return self._scopes.pop()[0].form(*sinks)

    def _meta(self, what: str) -> str:
        token = self.take()
        if token.kind != "meta":
            raise self.error(f"expected ?n, {what}", token)
        return token.text[1:]

    def _number(self, token: Token) -> float:
        sign = -1.0 if token.text == "-" else 1.0
        token = self.take() if sign < 0 else token
        if token.kind != "number":
            raise self.error("expected a number", token)
        return sign * float(token.text)
