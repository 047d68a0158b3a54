"""Nests that mean nothing on the machine are refused, and the message says where."""

from __future__ import annotations

import pytest

from dovetail.base.dtypes import dtype
from dovetail.base.errors import CodegenError
from dovetail.ir.index import Access, affine, as_index, constant, variable
from dovetail.ir.nest import Alloc, Barrier, Buffer, Cell, Fetch, Loop, Nest, Node, Number, Parallel, Start, Value, Wait
from dovetail.ir.nest_verify import verify_nest
from tests.unit.ir.nest_machine import MACHINE, R, call, memory, place, registers, with_r

LOAD = call("load", place("x", 0), R)
i = variable("i")


def loop(var: str, *body: Node) -> Loop:
    return Loop(var, (constant(0),), (constant(2),), 1, body)


def test_a_sound_nest_passes() -> None:
    whole = loop("i", call("load", place("x", i * 4), R), call("store", R, place("y", i * 4)))
    verify_nest(with_r(whole), MACHINE)


indirect = affine(((Access("y", (constant(0),)), 1),))
WRONG: list[tuple[str, tuple[Node, ...]]] = [
    ("unknown instruction 'jump'", (call("jump"),)),
    ("1 operands, 2 expected", (call("load", R),)),
    ("unknown buffer 'z'", (call("load", place("z", 0), R),)),
    ("2 indices into x", (call("load", place("x", 0, 0), R),)),
    ("r\\{3\\} is outside of r", (call("load", place("x", 0), Cell("r", (3,))),)),
    ("no registers 'q'", (call("load", place("x", 0), Cell("q", ())),)),
    ("is no place in memory 'main'", (call("load", R, R),)),
    ("is not in memory 'registers'", (call("store", place("x", 0), place("y", 0)),)),
    ("writes x\\[0\\], an argument that is only read", (call("store", R, place("x", 0)),)),
    ("writes i32\\(0\\)", (call("load", place("x", 0), Number(0, dtype("i32"))),)),
    ("f32\\(0.0\\) is f32, i32 expected", (call("fma", Number(0.0, dtype("f32")), R, R),)),
    ("is i64, i32 expected", (call("fma", Value(constant(1)), R, R),)),
    ("parameter 'n' is not given", (call("load_n", place("x", 0), R),)),
    ("parameter 'n' is given", (call("load", place("x", 0), R, n=1),)),
    ("parameter n = 5", (call("load_n", place("x", 0), R, n=5),)),
    ("parameter 's' is not given", (call("column", place("x", 0), R),)),
    ("unknown name 'i'", (call("load", place("x", "i"), R),)),
    ("'i' is already in use", (loop("i", loop("i", LOAD)),)),
    ("barrier core inside a parallel", (Parallel("core", "p", (constant(2),), (Barrier("core"),)),)),
    ("inside another parallel", (Parallel("core", "p", (constant(2),), (Parallel("core", "q", (constant(2),), ()),)),)),
    ("unknown unit 'lane'", (Barrier("lane"),)),
    ("declared twice", (Alloc(registers("r"), ()),)),
    ("has 8 lanes, 4 expected", (Alloc(registers("w", lanes=8), (call("load", place("x", 0), Cell("w", ())),)),)),
    ("are not counted", (loop("i", Alloc(Buffer("t", "registers", dtype("i32"), (i,)), ())),)),
    ("wait for 't', which is not started", (Wait("t"),)),
    ("'t' is started but never waited for", (Start("t", LOAD),)),
    ("fetch of z\\[0\\], which is in no buffer here", (Fetch(place("z", 0)),)),
    ("fetch of x\\[0, 0\\]: the buffer has 1 dimensions", (Fetch(place("x", 0, 0)),)),
    ("a step below 1", (Loop("i", (constant(0),), (constant(4),), 0, ()),)),
]


@pytest.mark.parametrize(("message", "body"), WRONG, ids=[m for m, _ in WRONG])
def test_a_nest_that_means_nothing_is_refused(message: str, body: tuple[Node, ...]) -> None:
    with pytest.raises(CodegenError, match=message):
        verify_nest(with_r(*body), MACHINE)


def test_an_index_is_read_from_integers_only() -> None:
    floats = memory("y", 8, kind="f32")
    nest = with_r(call("load", place("x", indirect), R), arguments=(memory("x", 8), floats), written=())
    with pytest.raises(CodegenError, match="an index is an integer"):
        verify_nest(nest, MACHINE)


def test_arguments_lie_in_memory() -> None:
    with pytest.raises(CodegenError, match="lies in registers"):
        verify_nest(Nest((registers("x"),), (), ()), MACHINE)
    with pytest.raises(CodegenError, match="'z' is written but is no argument"):
        verify_nest(Nest((memory("x", as_index(2)),), (), (), ("z",)), MACHINE)
