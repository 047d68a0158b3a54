"""The C function of an exported model, and its header: tables that the steps' places give, and what walks them.

The tables are those of runtime/model.ll, filled in by the linker instead of by Python.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from dovetail.base.dtypes import dtype as dtype_named
from dovetail.runtime.arrays import Parameter
from dovetail.runtime.model_frame import step_kinds
from dovetail.runtime.model_image import Image, NativeStep, Place, Space

SPINS = 5000
"""Turns of the waiting loop before a thread sleeps: some hundred microseconds."""
_TYPES = """\
%request = type { i64, i64, ptr, ptr, ptr, ptr, i32, i32, ptr, i64 }
%model = type { %request, ptr, ptr, i64, ptr, i64 }
%step = type { ptr, ptr, i64 }
%patch = type { ptr, i64 }
%table = type { i64, ptr }
declare i32 @dt_model_run(ptr)
declare void @dt_pool_reset(i32, i32)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""


def driver_text(image: Image, name: str, constants: Sequence[int], data: str, mask_set: int) -> str:
    """LLVM text of ``NAME_run`` and ``NAME_threads``; ``constants`` are places in what is called ``data``."""
    return _Driver(image, name, constants, data).text(mask_set)


class _Driver:
    def __init__(self, image: Image, name: str, constants: Sequence[int], data: str) -> None:
        self.image, self.name, self.constants, self.data = image, name, constants, data
        self.steps = tuple(image.natives())
        self.words: list[str] = []
        self.patches: list[str] = []
        self.starts: list[int] = []
        self.checked: list[str] = []
        status = 0
        for step in self.steps:
            self._settle(step, status)
            status += step.status_bytes
        self.status_bytes = status

    def text(self, mask_set: int) -> str:
        kinds = step_kinds(self.steps)
        rows = [
            f"%step {{ ptr @{step.entry}, ptr {_at('words', 8 * start)}, i64 {kind} }}"
            for step, start, kind in zip(self.steps, self.starts, kinds, strict=True)
        ]
        arguments = len(self.image.inputs) + len(self.image.outputs)
        request = (
            "%request { i64 0, i64 0, ptr null, ptr null, ptr @addresses, ptr null, i32 1, i32 0, ptr null, i64 0 }"
        )
        model = (
            f"%model {{ {request}, ptr @table, ptr @patches, i64 {len(self.patches)}, "
            f"ptr @checks, i64 {len(self.checked)} }}"
        )
        return "\n".join(
            [
                _TYPES,
                *(f"declare void @{entry}(i32, i32, ptr)" for entry in dict.fromkeys(s.entry for s in self.steps)),
                f"@{self.data} = external hidden constant [1 x i8]",
                _memory("arena", self.image.arena_bytes),
                _memory("status", self.status_bytes),
                f"@addresses = internal global [{max(1, arguments)} x i64] zeroinitializer",
                _array("words", "i64", self.words),
                _array("steps", "%step", rows),
                _array("patches", "%patch", self.patches),
                _array("checks", "ptr", [f"ptr {where}" for where in self.checked]),
                f"@table = internal global %table {{ i64 {len(rows)}, ptr @steps }}",
                f"@model = internal global {model}",
                self._run(),
                self._threads(mask_set),
            ]
        )

    def _settle(self, step: NativeStep, status: int) -> None:
        self.starts.append(len(self.words))
        for place in step.arguments:
            if place.space in (Space.INPUT, Space.OUTPUT):
                number = place.at + (len(self.image.inputs) if place.space is Space.OUTPUT else 0)
                self.patches.append(f"%patch {{ ptr {_at('words', 8 * len(self.words))}, i64 {number} }}")
                self.words.append("i64 0")
            else:
                self.words.append(self._word(place))
        self.words += [f"i64 {value}" for value in step.sizes]
        for name, offset in (("arena", step.shared), ("arena", step.private)):
            self.words.append(f"i64 ptrtoint (ptr {_at(name, offset)} to i64)")
        self.words += [f"i64 {step.stride}", f"i64 ptrtoint (ptr {_at('status', status)} to i64)"]
        if step.names:
            self.checked.append(_at("status", status))

    def _word(self, place: Place) -> str:
        name, offset = ("arena", place.at) if place.space is Space.ARENA else (self.data, self.constants[place.at])
        return f"i64 ptrtoint (ptr {_at(name, offset)} to i64)"

    def _run(self) -> str:
        """The caller's addresses, the steps, and outputs that are copies."""
        lines = [f"define i32 @{self.name}_run(ptr %inputs, ptr %outputs) {{"]
        for number in range(len(self.image.inputs)):
            lines += _moved(f"i{number}", "%inputs", number, number)
        for number in range(len(self.image.outputs)):
            lines += _moved(f"o{number}", "%outputs", number, len(self.image.inputs) + number)
        lines += [f"  store i64 0, ptr {where}" for where in self.checked]
        lines += [
            "  %result = call i32 @dt_model_run(ptr @model)",
            "  %good = icmp eq i32 %result, 0",
            "  br i1 %good, label %copies, label %end",
            "copies:",
        ]
        for copy in self.image.copies:
            length = _bytes(self.image.outputs[copy.output])
            source = self._source(copy.source)
            lines.append(
                f"  call void @llvm.memcpy.p0.p0.i64(ptr %o{copy.output}, ptr {source}, i64 {length}, i1 false)"
            )
        return "\n".join([*lines, "  br label %end", "end:", "  ret i32 %result", "}"])

    def _source(self, place: Place) -> str:
        if place.space in (Space.INPUT, Space.OUTPUT):
            return f"%{'i' if place.space is Space.INPUT else 'o'}{place.at}"
        name, offset = ("arena", place.at) if place.space is Space.ARENA else (self.data, self.constants[place.at])
        return _at(name, offset)

    def _threads(self, mask_set: int) -> str:
        return f"""define i32 @{self.name}_threads(i32 %threads) {{
entry:
  %some = icmp sge i32 %threads, 1
  %few = icmp sle i32 %threads, {self.image.threads}
  %fine = and i1 %some, %few
  br i1 %fine, label %set, label %refuse
set:
  call void @dt_pool_reset(i32 {mask_set}, i32 {SPINS})
  store i32 %threads, ptr getelementptr (%request, ptr @model, i32 0, i32 6)
  ret i32 0
refuse:
  ret i32 1
}}
"""


def header_text(image: Image, name: str) -> str:
    """What a C program includes."""
    guard = f"DOVETAIL_{name.upper()}_H"
    rows = [f" *   inputs[{number}]   {_described(p)}" for number, p in enumerate(image.inputs)]
    rows += [f" *   outputs[{number}]  {_described(p)}" for number, p in enumerate(image.outputs)]
    listed = "\n".join(rows)
    return f"""#ifndef {guard}
#define {guard}
#ifdef __cplusplus
extern "C" {{
#endif

/* Runs the model: dense row-major tensors in and out, aligned to their elements, apart from each other.
 *
{listed}
 *
 * Returns 0, or 2 when threads could not be had, or 3 when an index that was read from a tensor left the tensor it
 * indexes; outputs are then not to be used. One caller at a time: the model's memory is part of it.
 */
int {name}_run(const void *const *inputs, void *const *outputs);

/* How many threads run the model from now on, 1 to {image.threads}; 1 before the first call. Not while it runs.
 * Returns 0, or 1 for a number that is not one of these. Link with -lpthread where that is a library of its own.
 */
int {name}_threads(int threads);

#ifdef __cplusplus
}}
#endif
#endif
"""


def _described(parameter: Parameter) -> str:
    shape = "".join(f"[{extent}]" for extent in parameter.shape)
    return f"{parameter.dtype}{shape}  {_plain(parameter.name)}"


def _plain(text: str) -> str:
    """A name inside a comment: nothing that could end it or make another line."""
    return "".join(c if c.isalnum() or c in "_ +-.,()" else "?" for c in text)


def _moved(name: str, source: str, number: int, at: int) -> list[str]:
    """Pointer ``number`` of ``source`` goes to the addresses."""
    return [
        f"  %{name}.at = getelementptr ptr, ptr {source}, i64 {number}",
        f"  %{name} = load ptr, ptr %{name}.at",
        f"  store ptr %{name}, ptr {_at('addresses', 8 * at)}",
    ]


def _at(name: str, offset: int) -> str:
    return f"getelementptr (i8, ptr @{name}, i64 {offset})"


def _memory(name: str, length: int) -> str:
    return f"@{name} = internal global [{max(64, length)} x i8] zeroinitializer, align 64"


def _array(name: str, kind: str, rows: Sequence[str]) -> str:
    content = f"[ {', '.join(rows)} ]" if rows else "zeroinitializer"
    return f"@{name} = internal global [{max(1, len(rows))} x {kind}] {content}, align 16"


def _bytes(parameter: Parameter) -> int:
    return prod(n or 0 for n in parameter.shape) * dtype_named(parameter.dtype).bytes
