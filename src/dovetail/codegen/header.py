"""The C header beside an object file: what to call and with what."""

from __future__ import annotations

from dovetail.codegen.lower import LlvmModule
from dovetail.codegen.shares import status_bytes
from dovetail.ir.nest import Buffer, Nest


def header_text(module: LlvmModule, nest: Nest) -> str:
    """A C declaration of ``module``'s entry point, with the meaning of every word of its argument."""
    lines = [f"{number:4}  {_argument(b, nest)}" for number, b in enumerate(nest.arguments)]
    count = len(lines)
    lines += [f"{count + number:4}  size {_plain(name)}, a number" for number, name in enumerate(nest.sizes)]
    count += len(nest.sizes)
    lines.append(f"{count:4}  address of the shared arena: {_arena(module.shared.buffers)}")
    lines.append(f"{count + 1:4}  address of the first unit's private arena: {_arena(module.private.buffers)}")
    lines.append(f"{count + 2:4}  bytes from one unit's private arena to the next one's, a multiple of 64")
    lines.append(f"{count + 3:4}  address of two status words; {_counters()}, all 0 before the call")
    words = "\n".join(f" *   {line}" for line in lines)
    guard = f"DOVETAIL_{module.entry.upper()}_H"
    return f"""#ifndef {guard}
#define {guard}
#include <stdint.h>
#ifdef __cplusplus
extern "C" {{
#endif

/* Called by each of `units` threads with its own `unit`, 0 <= unit < units, all at the same time; by one thread, with
 * unit 0 and units 1, nothing else is needed. With more, `void dt_barrier(int32_t units)` must make them meet.
 *
 * words:
{words}
 *
 * Arenas start at multiples of 64 bytes; each buffer in one takes its bytes rounded up to a multiple of 64.
 * After the call, status word 0 is 0, or 1 + (buffer << 8 | dimension) of an index that was read from a tensor and
 * lies outside its buffer; status word 1 is that index. Outputs are then not to be used.
{_beside(module)} */
void {module.entry}(int32_t unit, int32_t units, const int64_t *words);

#ifdef __cplusplus
}}
#endif
#endif
"""


def _counters() -> str:
    one = status_bytes(2) - status_bytes(1)
    return f"with several units of {status_bytes(1)} + {one // 2} * units bytes"


def _beside(module: LlvmModule) -> str:
    """What to link with."""
    if not module.beside:
        return ""
    lines = [f" *   {_plain(name)}" + (f", defined in {_plain(file)}" if file else "") for name, file in module.beside]
    return "\n".join([" *", " * To be linked with what it calls:", *lines, ""])


def _argument(buffer: Buffer, nest: Nest) -> str:
    use = "written" if buffer.name in nest.written else "read"
    shape = "".join(f"[{_plain(str(extent))}]" for extent in buffer.shape)
    return f"address of {_plain(buffer.tensor or buffer.name)}: {buffer.dtype}{shape}, {use}"


def _arena(buffers: tuple[Buffer, ...]) -> str:
    sizes = (" * ".join([str(b.dtype.bytes), *(f"({_plain(str(e))})" for e in b.shape)]) for b in buffers)
    return " + ".join(sizes) + " bytes" if buffers else "unused"


def _plain(text: str) -> str:
    """A name inside a comment: nothing that could end it or make another line."""
    return "".join(c if c.isalnum() or c in "_ +-%,()." else "?" for c in text.replace("//", "div"))
