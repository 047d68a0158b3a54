"""Text -> types: ``f32[8, n]``, ``(f32, i32)[n]``, ``(?a, ?a) -> ?a``. The grammar is in ``types``."""

from __future__ import annotations

from dovetail.base.dtypes import DTYPES
from dovetail.ir.functional.sizes import SizeReader
from dovetail.ir.functional.types import Function, Scalar, Tuple, Type, Unknown, array
from dovetail.ir.tokens import Source


def parse_type(text: str, name: str = "type") -> Type:
    """The type that ``text`` describes; ``name`` stands for it in messages."""
    reader = TypeReader(Source(text, name))
    return reader.whole_text(reader.type)


class TypeReader(SizeReader):
    """Reads types."""

    def type(self) -> Type:
        """A type; ``->`` binds last and to the right."""
        several = self.type_members() if self.here.text == "(" else None
        first: Type = self.sized(Tuple(several)) if several is not None else self.sized(self.plain_type())
        if not self.accept("->"):
            return first
        params = several if several is not None and first == Tuple(several) else (first,)
        return Function(params, self.inside(self.type))

    def type_members(self) -> tuple[Type, ...]:
        self.expect("(")
        members = [self.inside(self.type)]
        while self.accept(","):
            if self.here.text == ")":
                break
            members.append(self.inside(self.type))
        self.expect(")")
        return tuple(members)

    def plain_type(self) -> Type:
        token = self.take()
        if token.kind == "meta":
            return Unknown(token.text[1:])
        if token.text not in DTYPES:
            raise self.unknown("dtype", token, DTYPES) if token.kind == "name" else self.error("expected a type", token)
        return Scalar(DTYPES[token.text])

    def sized(self, element: Type) -> Type:
        """``element`` or arrays of it; a group of one type is that type."""
        if isinstance(element, Tuple) and len(element.members) == 1:
            (element,) = element.members
        while self.accept("["):
            sizes = [self.size()]
            while self.accept(","):
                sizes.append(self.size())
            self.expect("]")
            element = array(tuple(sizes), element)
        return element
