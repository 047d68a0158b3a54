"""Machines that nobody thought of: a target file drawn from a seed.

``machine(seed)`` is the text of a file with a contraction of random extents (fixed, or ranges with constraints),
operand memories with or without one on the way to them, random sizes and alignments, copies that can do more or less,
waited for or not, zeros set by an instruction or copied, a vector unit, and a processor beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

DTYPES = (("i8", "i32"), ("i16", "i32"), ("bf16", "f32"), ("f16", "f32"), ("f8e4m3fn", "f32"), ("f32", "f32"))
"""Of operands, and of their sums."""


@dataclass(frozen=True, slots=True)
class Machine:
    """The text of a target file and what its instructions work on."""

    name: str
    text: str
    operand: str
    total: str


def machine(seed: int) -> Machine:
    """The same machine for the same seed."""
    draw = Random(seed)
    operand, total = draw.choice(DTYPES)
    near_a, near_b = draw.choice((("pad", "pad"), ("left", "right"), ("pad", "right")))
    way = "buffer" if draw.random() < 0.4 else ""
    parts = [_head(seed, draw), _memory("dram", "main", 1 << 26, draw)]
    parts += [_memory(name, "scratchpad", draw.choice((3000, 4096, 16384, 65536)), draw) for name in {way} - {""}]
    parts += [
        _memory(name, "scratchpad", draw.choice((2048, 3000, 8192, 32768)), draw)
        for name in dict.fromkeys((near_a, near_b, "sums"))
    ]
    parts.append(_contraction(draw, operand, total, near_a, near_b))
    for memory in dict.fromkeys((near_a, near_b)):
        parts += _ways(draw, operand, "dram", way, memory)
        if draw.random() < 0.5:
            parts.append(_copy(draw, f"out_of_{memory}", operand, memory, "dram", True))
    parts += _ways(draw, total, "dram", "", "sums")
    parts.append(_copy(draw, "store", total, "sums", "dram", True))
    if draw.random() < 0.7:
        parts.append(_clear(draw, total, "sums"))
    for memory in dict.fromkeys((way or near_a, way or near_b)):
        if draw.random() < 0.4:
            parts.append(_clear(draw, operand, memory))
    parts += _vector(draw, total)
    return Machine(f"machine{seed}", "\n".join(parts), operand, total)


def _head(seed: int, draw: Random) -> str:
    units = ["core", "matrix", "vector", "dma"]
    text = f'name = "machine{seed}"\ndoc = "A machine drawn from the seed {seed}."\n\n'
    text += '[[unit]]\nname = "host"\ncount = 1\nruns = "generic"\n'
    return text + "".join(f'\n[[unit]]\nname = "{unit}"\ncount = 1\n' for unit in units)


def _memory(name: str, kind: str, size: int, draw: Random) -> str:
    text = f'[[memory]]\nname = "{name}"\nkind = "{kind}"\nbytes = {size}\nalign = {draw.choice((1, 4, 16, 64))}\n'
    text += f"bytes_per_cycle = {draw.choice((2, 8, 32))}\n" if kind == "main" else 'per = "core"\n'
    return text


# -- the contraction


def _contraction(draw: Random, operand: str, total: str, near_a: str, near_b: str) -> str:
    """A product of matrices, a matrix and a vector, or two vectors; transposed or not."""
    kind = draw.choice(("ijk", "ijk", "ijk", "ik", "ij"))
    params: dict[str, str] = {}
    where: list[str] = []
    loops = ", ".join(f"{loop}<{_extent(draw, loop, params, where)}" for loop in kind)
    a, b = [loop for loop in "ik" if loop in kind], [loop for loop in "kj" if loop in kind]
    for indices in (a, b):
        if draw.random() < 0.3:
            indices.reverse()
    out = [loop for loop in "ij" if loop in kind]
    accesses = {"c": out, "a": a, "b": b}
    value = " * ".join(f"{name}[{', '.join(accesses[name])}]" for name in "ab")
    places = {"c": (total, "sums"), "a": (operand, near_a), "b": (operand, near_b)}
    operands = ", ".join(
        f'{name} = "{dtype} @ {memory}{_strides(draw, name, len(accesses[name]))}"'
        for name, (dtype, memory) in places.items()
    )
    cycles = " * ".join(params) or str(draw.randint(1, 20))
    text = f'[[instruction]]\nname = "product"\ncomputes = "for {loops}: c[{", ".join(out)}] += {value}"\n'
    text += f"operands = {{ {operands} }}\n"
    return text + _limits(params, where) + f'unit = "matrix"\ncycles = "{cycles}"\nlatency = "3 + {cycles}"\n'


def _extent(draw: Random, loop: str, params: dict[str, str], where: list[str]) -> str:
    """A number, or a parameter with its range and perhaps a constraint."""
    if draw.random() < 0.5:
        return str(draw.choice((1, 2, 3, 4, 8)))
    name = f"n{loop}"
    step = draw.choice((1, 1, 2, 4))
    low, high = draw.choice((1, step, 2 * step)), step * draw.randint(2, 6)
    params[name] = f"{low}..{max(low, high)}"
    if step > 1:
        where.append(f"{name} % {step} == 0")
    return name


def _limits(params: dict[str, str], where: list[str]) -> str:
    text = ""
    if params:
        text += "params = { " + ", ".join(f'{name} = "{value}"' for name, value in params.items()) + " }\n"
    quoted = ", ".join(f'"{condition}"' for condition in where)
    return text + (f"where = [{quoted}]\n" if where else "")


def _strides(draw: Random, name: str, rank: int) -> str:
    """Dense, rows at any distance, or elements at any distance."""
    kind = draw.choice(("dense", "rows", "rows", "any"))
    if kind == "dense":
        return ""
    last = f"s{name}" if kind == "any" else "1"
    return f" [{', '.join([f'd{name}', last][-rank:])}]"


# -- copies and zeros


def _ways(draw: Random, dtype: str, main: str, way: str, memory: str) -> list[str]:
    """Copies from main memory to where an operand is wanted. At least one takes elements from anywhere."""
    if not way:
        plain = [_copy(draw, f"load_{memory}", dtype, main, memory, False)] if draw.random() < 0.6 else []
        return [*plain, _copy(draw, f"gather_{memory}", dtype, main, memory, True)]
    there = [_copy(draw, f"load_{way}_for_{memory}", dtype, main, way, True)]
    return [*there, _copy(draw, f"pass_{memory}", dtype, way, memory, True)]


def _copy(draw: Random, name: str, dtype: str, source: str, sink: str, anywhere: bool) -> str:
    """One or two dimensions; ``anywhere``: elements at any distance, else rows of neighbours."""
    rank = draw.choice((1, 2, 2))
    loops = "ij"[:rank]
    most = draw.choice((16, 100, 4096))
    params = {f"n{loop}": f"1..{most}" for loop in loops}
    inner = ("fs", "ts") if anywhere else ("1", "1")
    strides = [", ".join([outer, last][-rank:]) for outer, last in zip(("fd", "td"), inner, strict=True)]
    index = ", ".join(loops)
    total = " * ".join(params)
    text = f'[[instruction]]\nname = "{name}"\n'
    text += f'computes = "for {", ".join(f"{x}<n{x}" for x in loops)}: t[{index}] = f[{index}]"\n'
    text += f'operands = {{ t = "{dtype} @ {sink} [{strides[1]}]", f = "{dtype} @ {source} [{strides[0]}]" }}\n'
    text += _limits(params, []) + 'unit = "dma"\n'
    text += "async = true\n" if draw.random() < 0.6 else ""
    return text + f'cycles = "{draw.randint(0, 50)} + ceil({total} / {draw.choice((1, 4, 16))})"\n'


def _clear(draw: Random, dtype: str, memory: str) -> str:
    rank = draw.choice((1, 2))
    loops = "ij"[:rank]
    strides = "[d, 1]" if rank == 2 else ""
    text = f'[[instruction]]\nname = "clear_{memory}"\n'
    text += f'computes = "for {", ".join(f"{x}<n{x}" for x in loops)}: t[{", ".join(loops)}] = 0"\n'
    text += f'operands = {{ t = "{dtype} @ {memory} {strides}" }}\n'
    text += _limits({f"n{x}": f"1..{draw.choice((8, 256))}" for x in loops}, [])
    return text + 'unit = "vector"\ncycles = 2\n'


# -- the vector unit


def _vector(draw: Random, total: str) -> list[str]:
    found = []
    bodies = {"add": "a[l] + b[l]", "mul": "a[l] * b[l]", "relu": "max(a[l], 0)"}
    for name in draw.sample(sorted(bodies), draw.randint(1, 3)):
        params: dict[str, str] = {}
        extent = "n" if draw.random() < 0.5 else str(draw.choice((4, 8, 16)))
        if extent == "n":
            params["n"] = f"1..{draw.choice((8, 64))}"
        value = bodies[name]
        operands = ", ".join(f'{x} = "{total} @ sums"' for x in "yab" if x == "y" or f"{x}[" in value)
        text = f'[[instruction]]\nname = "{name}"\ncomputes = "for l<{extent}: y[l] = {value}"\n'
        text += f"operands = {{ {operands} }}\n" + _limits(params, [])
        found.append(text + f'unit = "vector"\ncycles = 2\nlatency = {draw.randint(2, 9)}\n')
    return found
