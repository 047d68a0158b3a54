"""Programs of a graph -> their parts: kept ones, general ones at the sizes at hand, and new ones.

For each program, in this order: its own part, kept on disk; a general part that it is an instance of; a new general
part, where a program of its form was seen before; a new part of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from dovetail.base.errors import DovetailError
from dovetail.ir.generalise import instance
from dovetail.ir.program import Program
from dovetail.model.general import Family, Flat, flat_of, keep_general, kept_generals
from dovetail.model.parts import Part, from_bytes, settled, to_bytes
from dovetail.model.workers import Setting, compiled_parts, parts_or_errors
from dovetail.stored import Shelf, target_key

_KIND = "part"
Done = Callable[[int, str], None]
"""(how many programs have their part, the text of the one that has it now)"""


def parts_of(
    programs: Mapping[str, Program],
    setting: Setting,
    jobs: int | None,
    family: Family | None,
    shares: bool,
    done: Done,
) -> dict[str, Part]:
    """The part of each program, by its text; ``family`` knows the graph's other shapes, to share parts with or not."""
    work = _Work(setting, jobs, done)
    missing = {}
    for text, program in programs.items():
        kept = work.kept(program)
        if kept is None:
            missing[text] = program
        else:
            work.found[text] = kept
    if family is not None and shares:
        missing = work.general(missing, family)
    work.special(missing)
    if family is not None and family.dynamic is not False:
        family.look(programs.values())
    return work.found


@dataclass(slots=True)
class _Work:
    setting: Setting
    jobs: int | None
    done: Done
    found: dict[str, Part] = field(default_factory=dict)

    def special(self, programs: Mapping[str, Program]) -> None:
        """Each program's own part, newly compiled."""
        for text, part in compiled_parts(programs, self.setting, self.jobs):
            self.keep(programs[text], part)
            self.add(text, part)

    def general(self, programs: Mapping[str, Program], family: Family) -> dict[str, Program]:
        """Parts with run-time sizes where there are some, or can be; the programs that need their own."""
        wanted: dict[str, tuple[Flat, Program]] = {}
        rest = {}
        for text, program in programs.items():
            flat = flat_of(program)
            part = family.part(flat) or self.kept_general(flat, family)
            if part is not None:
                self.add(text, part)
            elif (made := family.general(flat)) is not None:
                wanted[text] = flat, made
            else:
                rest[text] = program
        self._compile({str(made): made for _, made in wanted.values()}, family)
        for text, (flat, _) in wanted.items():
            part = family.part(flat)
            if part is None:
                family.refuse(flat)
                rest[text] = programs[text]
            else:
                self.add(text, part)
        return rest

    def kept_general(self, flat: Flat, family: Family) -> Part | None:
        """A part from disk, made of programs that another process has seen."""
        for program in kept_generals(self.setting.store, self._key(), flat.form):
            sizes = instance(program, flat.program)
            part = None if sizes is None else self.kept(program)
            if sizes is not None and part is not None:
                family.keep(program, part)
                return settled(part, sizes)
        return None

    def _compile(self, programs: Mapping[str, Program], family: Family) -> None:
        """General programs; one that cannot be planned or certified as it is goes without a part."""
        missing = {}
        for text, program in programs.items():
            if (kept := self.kept(program)) is None:
                missing[text] = program
            else:
                family.keep(program, kept)
        for text, part in parts_or_errors(missing, self.setting, self.jobs):
            if not isinstance(part, DovetailError):
                self.keep(programs[text], part)
                keep_general(self.setting.store, self._key(), programs[text])
                family.keep(programs[text], part)

    def add(self, text: str, part: Part) -> None:
        self.found[text] = part
        self.done(len(self.found), text)

    def kept(self, program: Program) -> Part | None:
        store = self.setting.store
        data = None if store is None else store.get(_KIND, self._program_key(program))
        return None if data is None else from_bytes(data)

    def keep(self, program: Program, part: Part) -> None:
        if self.setting.store is not None:
            self.setting.store.put(_KIND, self._program_key(program), to_bytes(part))

    def _program_key(self, program: Program) -> dict[str, str]:
        return {**Shelf(self.setting.store, program, self.setting.target).key, "threads": str(self.setting.threads)}

    def _key(self) -> dict[str, str]:
        return {**target_key(self.setting.target), "threads": str(self.setting.threads)}
