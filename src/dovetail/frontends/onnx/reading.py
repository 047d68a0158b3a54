"""What goes along while a file becomes plain data: where we are, what has been spent, and where data beside it lies."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from dovetail.base.errors import LimitError, ModelError
from dovetail.base.limits import ModelLimits
from dovetail.base.words import printable
from dovetail.frontends.onnx.external import ExternalData


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a model; written out only when a message needs it."""

    what: str
    name: str = ""
    parent: Place | None = None

    def inside(self, what: str, name: str = "") -> Place:
        return Place(what, name, self)

    def __str__(self) -> str:
        parts: list[str] = []
        place: Place | None = self
        while place is not None:
            parts.append(f"{place.what} '{printable(place.name)}'" if place.name else place.what)
            place = place.parent
        return ", in ".join(parts)


@dataclass(slots=True)
class Reading:
    """One file being read: limits, what of them is spent, and its directory when it has one."""

    limits: ModelLimits
    external: ExternalData | None = None
    spent: Counter[str] = field(default_factory=Counter)

    def spend(self, limit: str, amount: int, place: Place) -> None:
        """Take ``amount`` of what ``limit`` (a field of ModelLimits) allows of all parts of the file together."""
        self.spent[limit] += amount
        self.within(limit, self.spent[limit], place)

    def within(self, limit: str, amount: int, place: Place) -> None:
        """Refuse ``amount`` when it is more than ``limit`` allows."""
        allowed: int = getattr(self.limits, limit)
        if amount > allowed:
            raise LimitError(
                f"{amount} is more than the {allowed} that the limit '{limit}' of model files allows",
                where=str(place),
                hint=f"ModelLimits({limit}=...) when the file can be trusted",
            )

    def text(self, words: str | bytes, what: str, place: Place) -> str:
        """A name of the file; protobuf gives bytes where it is not UTF-8."""
        if isinstance(words, bytes):
            raise ModelError(f"the {what} is not UTF-8 text", where=str(place), why=f"it reads {words[:32]!r}")
        if len(words) > self.limits.name_bytes:
            self.within("name_bytes", len(words), place.inside(f"the {what}"))
        return words
