"""Several relocatable ELF files as one: sections side by side, one table of symbols, every name bound that can be.

Nothing is moved inside a section, so code is taken as it is, whatever the machine; a linker later joins sections of
the same name. What is not exported becomes local: two such files can be linked into one program.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from dovetail.base.errors import CodegenError

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")
_MAGIC = b"\x7fELF\x02\x01"  # 64 bits, little endian
_RELOCATABLE = 1
_PROGRAM_BITS, _SYMTAB, _STRTAB, _RELA, _NO_BITS, _GROUP, _ADDRESSES = 1, 2, 3, 4, 8, 17, 0x6FFF4C03
_ALLOCATED, _LINK_ORDER, _IN_GROUP = 0x2, 0x80, 0x200
_LOCAL, _GLOBAL = 0, 1
_OBJECT, _FILE = 1, 4
_UNDEFINED, _RESERVED = 0, 0xFF00
_UNWINDING = b".eh_frame"
"""Left out: nothing is thrown through generated code, and there can be only one."""
_Number = tuple[bool, int]


@dataclass(frozen=True, slots=True)
class Data:
    """Read-only bytes with a name, from a multiple of ``alignment`` on: blocks one behind the other."""

    name: str
    blocks: tuple[memoryview, ...]
    alignment: int = 64


@dataclass(frozen=True, slots=True)
class _Section:
    name: bytes
    kind: int
    flags: int
    length: int
    link: int
    info: int
    alignment: int
    entry: int
    blocks: tuple[memoryview, ...]


@dataclass(frozen=True, slots=True)
class _Symbol:
    name: bytes
    binding: int
    kind: int
    other: int
    section: int
    value: int
    size: int

    @property
    def is_defined(self) -> bool:
        return self.section != _UNDEFINED


@dataclass(frozen=True, slots=True)
class _Object:
    """An ELF file, read: its sections by number, and its symbols."""

    machine: int
    flags: int
    sections: tuple[_Section, ...]
    symbols: tuple[_Symbol, ...]


def joined(objects: Sequence[bytes], data: Data, exported: frozenset[str]) -> Iterator[memoryview]:
    """The bytes, piece by piece, of one object file with what is in ``objects``, and ``data`` under its name."""
    read = [_read(code) for code in objects]
    if len({one.machine for one in read}) != 1:
        raise CodegenError("object files for different machines cannot be one")
    return _Writer(read, data, frozenset(name.encode() for name in exported)).pieces()


class _Writer:
    """New numbers for sections and symbols; a symbol's is whether it stands behind all local ones, and which it is."""

    def __init__(self, objects: Sequence[_Object], data: Data, exported: frozenset[bytes]) -> None:
        self.head = objects[0]
        self.sections: list[_Section] = [_Section(b"", 0, 0, 0, 0, 0, 0, 0, ())]
        self.locals: list[_Symbol] = [_Symbol(b"", 0, 0, 0, 0, 0, 0)]
        self.globals: list[_Symbol] = []
        self.exported = exported
        length = sum(block.nbytes for block in data.blocks)
        part = _Section(b".rodata", _PROGRAM_BITS, _ALLOCATED, length, 0, 0, data.alignment, 0, data.blocks)
        self.sections.append(part)
        symbol = _Symbol(data.name.encode(), _LOCAL, _OBJECT, 0, 1, 0, length)
        self.defined: dict[bytes, _Number] = {symbol.name: self._add(symbol)}
        places = [self._place(one) for one in objects]
        symbols = [self._define(one, where) for one, where in zip(objects, places, strict=True)]
        for one, found in zip(objects, symbols, strict=True):
            self._look_up(one, found)
        for one, where, found in zip(objects, places, symbols, strict=True):
            self._relocate(one, where, found)

    def pieces(self) -> Iterator[memoryview]:
        names = _Names()
        symbols = b"".join(_packed(s, names) for s in (*self.locals, *self.globals))
        count, first = len(self.sections), len(self.locals)
        self.sections = [replace(s, link=count) if s.kind == _RELA else s for s in self.sections]
        table = _bytes_section(b".symtab", _SYMTAB, symbols, count + 1, first, _SYMBOL.size)
        self.sections += [table, _bytes_section(b".strtab", _STRTAB, names.text())]
        titles = _Names()
        numbers = [titles.at(s.name) for s in (*self.sections, _bytes_section(b".shstrtab", _STRTAB, b""))]
        self.sections.append(_bytes_section(b".shstrtab", _STRTAB, titles.text()))
        offsets, end = self._offsets()
        yield memoryview(self._header(end))
        at = _HEADER.size
        for section, offset in zip(self.sections, offsets, strict=True):
            if section.blocks:
                yield memoryview(bytes(offset - at))
                yield from section.blocks
                at = offset + section.length
        yield memoryview(bytes(end - at))
        for section, number, offset in zip(self.sections, numbers, offsets, strict=True):
            yield memoryview(_section_header(section, number, offset))

    def _place(self, one: _Object) -> dict[int, int]:
        """The object's sections that hold something, put behind those that are there."""
        found = {}
        for number, section in enumerate(one.sections):
            if section.kind in (0, _SYMTAB, _STRTAB, _RELA, _ADDRESSES) or section.name == _UNWINDING:
                continue
            if section.kind == _GROUP or section.flags & _IN_GROUP:
                raise CodegenError("an object file with groups of sections cannot be joined with others")
            found[number] = len(self.sections)
            self.sections.append(section)
        for number, place in found.items():
            if one.sections[number].flags & _LINK_ORDER:
                link = found[one.sections[number].link]
                self.sections[place] = replace(one.sections[number], link=link)
        return found

    def _define(self, one: _Object, places: dict[int, int]) -> dict[int, _Number]:
        """Symbols that the object defines."""
        found = {}
        for number, symbol in enumerate(one.symbols):
            section = symbol.section if symbol.section >= _RESERVED else places.get(symbol.section, _UNDEFINED)
            if number == 0 or symbol.kind == _FILE or section == _UNDEFINED:
                continue
            is_global = symbol.binding != _LOCAL and symbol.name in self.exported
            placed = replace(symbol, section=section, binding=_GLOBAL if is_global else _LOCAL, other=0)
            found[number] = self._add(placed)
            if symbol.binding != _LOCAL and self.defined.setdefault(symbol.name, found[number]) != found[number]:
                raise CodegenError(f"two object files define '{symbol.name.decode(errors='replace')}'")
        return found

    def _look_up(self, one: _Object, found: dict[int, _Number]) -> None:
        """Symbols that the object leaves open: those of the others, else names for a linker to find."""
        for number, symbol in enumerate(one.symbols):
            if number and not symbol.is_defined and symbol.kind != _FILE:
                if symbol.name not in self.defined:
                    self.defined[symbol.name] = self._add(replace(symbol, other=0))
                found[number] = self.defined[symbol.name]

    def _add(self, symbol: _Symbol) -> _Number:
        """Whether it stands among those behind all local ones, and where."""
        table = self.locals if symbol.binding == _LOCAL else self.globals
        table.append(symbol)
        return table is self.globals, len(table) - 1

    def _relocate(self, one: _Object, places: dict[int, int], symbols: dict[int, _Number]) -> None:
        for section in one.sections:
            if section.kind != _RELA or section.info not in places:
                continue
            rows = []
            for offset, info, addend in _RELOCATION.iter_unpack(section.blocks[0] if section.blocks else b""):
                is_global, at = symbols[info >> 32] if info >> 32 else (False, 0)
                number = at + len(self.locals) if is_global else at
                rows.append(_RELOCATION.pack(offset, number << 32 | info & 0xFFFFFFFF, addend))
            made = _bytes_section(section.name, _RELA, b"".join(rows), 0, places[section.info], _RELOCATION.size)
            self.sections.append(replace(made, flags=section.flags))

    def _offsets(self) -> tuple[list[int], int]:
        at, offsets = _HEADER.size, []
        for section in self.sections:
            if section.blocks:
                at = -(-at // max(1, section.alignment)) * max(1, section.alignment)
            offsets.append(at)
            at += section.length if section.blocks else 0
        return offsets, -(-at // 8) * 8

    def _header(self, end: int) -> bytes:
        identity = _MAGIC + b"\x01" + bytes(9)
        count = len(self.sections)
        parts = (identity, _RELOCATABLE, self.head.machine, 1, 0, 0, end, self.head.flags, _HEADER.size, 0, 0)
        return _HEADER.pack(*parts, _SECTION.size, count, count - 1)


class _Names:
    """A table of names, each once."""

    def __init__(self) -> None:
        self._at = {b"": 0}
        self._text = bytearray(b"\0")

    def at(self, name: bytes) -> int:
        if name not in self._at:
            self._at[name] = len(self._text)
            self._text += name + b"\0"
        return self._at[name]

    def text(self) -> bytes:
        return bytes(self._text)


def _read(code: bytes) -> _Object:
    view = memoryview(code)
    if not code.startswith(_MAGIC) or len(code) < _HEADER.size:
        raise CodegenError("generated code is no ELF object file", hint="export works where object files are ELF files")
    parts = _HEADER.unpack_from(code)
    machine, table, flags, count, titles = parts[2], parts[6], parts[7], parts[12], parts[13]
    rows = [_SECTION.unpack_from(code, table + number * _SECTION.size) for number in range(count)]
    text = bytes(view[rows[titles][4] : rows[titles][4] + rows[titles][5]])
    sections = tuple(_section(view, row, text) for row in rows)
    symbols: tuple[_Symbol, ...] = ()
    for section in sections:
        if section.kind == _SYMTAB:
            names = bytes(sections[section.link].blocks[0])
            symbols = tuple(_symbol(row, names) for row in _SYMBOL.iter_unpack(section.blocks[0]))
    return _Object(machine, flags, sections, symbols)


def _section(view: memoryview, row: Sequence[int], names: bytes) -> _Section:
    name, kind, flags, _, offset, length, link, info, alignment, entry = row
    blocks = (view[offset : offset + length],) if length and kind not in (0, _NO_BITS) else ()
    return _Section(_at(names, name), kind, flags, length, link, info, alignment, entry, blocks)


def _symbol(row: Iterable[int], names: bytes) -> _Symbol:
    name, info, other, section, value, size = row
    return _Symbol(_at(names, name), info >> 4, info & 15, other, section, value, size)


def _at(names: bytes, start: int) -> bytes:
    return names[start : names.index(b"\0", start)]


def _packed(symbol: _Symbol, names: _Names) -> bytes:
    info = symbol.binding << 4 | symbol.kind
    return _SYMBOL.pack(names.at(symbol.name), info, symbol.other, symbol.section, symbol.value, symbol.size)


def _bytes_section(name: bytes, kind: int, content: bytes, link: int = 0, info: int = 0, entry: int = 0) -> _Section:
    blocks = (memoryview(content),) if content else ()
    return _Section(name, kind, 0, len(content), link, info, 8 if entry else 1, entry, blocks)


def _section_header(section: _Section, name: int, offset: int) -> bytes:
    parts = (section.kind, section.flags, 0, offset, section.length, section.link, section.info)
    return _SECTION.pack(name, *parts, section.alignment, section.entry)
