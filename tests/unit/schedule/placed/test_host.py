"""Statements on the host unit: one instruction each, the results of the reference evaluator to the bit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dovetail.base.errors import MappingError, SimulationError
from dovetail.ir.evaluate import evaluate
from dovetail.ir.fill import fill
from dovetail.ir.index import constant
from dovetail.ir.nest import Alloc, Buffer, Loop, Nest, Node
from dovetail.ir.parse import parse
from dovetail.ir.program import Program, Role
from dovetail.ir.verify import verify
from dovetail.schedule.placed.host import host_call, host_start, host_target
from dovetail.sim.functional import simulate
from dovetail.sim.timed import simulate_time
from dovetail.targets.load import load_target
from dovetail.targets.model import Target

MACHINE = load_target("systolic16")

PROGRAMS = {
    "a product": """
        in a: i8[24,40]  in b: i8[40,30]  out c: i32[24,30]
        for i<24, j<30, k<40: c[i,j] += a[i,k] * b[k,j]
    """,
    "a convolution with guards": """
        in x: f32[2,3,9,9]  const w: f32[5,3,3,3]  out y: f32[2,5,9,9]
        for n<2, k<5, p<9, q<9, c<3, r<3, s<3 where p + r >= 1, p + r <= 9, q + s >= 1, q + s <= 9:
            y[n,k,p,q] += x[n,c,p+r-1,q+s-1] * w[k,c,r,s]
    """,
    "softmax": """
        in x: f32[6,50]  out y: f32[6,50]  temp m: f32[6]  temp e: f32[6,50]  temp s: f32[6]
        for i<6, j<50: m[i] max= x[i,j]
        for i<6, j<50: e[i,j] = exp(x[i,j] - m[i])
        for i<6, j<50: s[i] += e[i,j]
        for i<6, j<50: y[i,j] = e[i,j] / s[i]
    """,
    "a recurrence": """
        in w: f32[12,12]  in x: f32[7,12]  in h0: f32[12]  out h: f32[8,12]  temp g: f32[7,12]
        for i<12: h[0,i] = h0[i]
        seq t<7: for i<12, j<12: g[t,i] += w[i,j] * h[t,j]
        seq t<7: for i<12: h[t+1,i] = tanh(g[t,i] + x[t,i])
    """,
    "steps as numbers, and a step whose first element is not there": """
        in x: f32[5,4]  out y: f32[5,4]
        seq t<5: for i<4 where t >= 1: y[t,i] += x[t-1,i] * f32(t)
    """,
    "sums over steps": """
        in x: i32[9,4]  out y: i32[4]
        seq t<9: for i<4: y[i] += x[t,i]
    """,
    "a window that walks over steps": """
        in x: f32[10,4]  out y: f32[8,4]
        seq t<8: for i<4, r<3: y[t,i] += x[t+r,i]
    """,
    "a gather": """
        in x: f32[20,6]  in at: i32[8]  out y: f32[8,6]
        for i<8, j<6: y[i,j] = x[at[i] % 20,j]
    """,
    "a scatter": """
        in x: i32[8,3]  in at: i32[8]  out y: i32[20,3]
        for i<8, j<3: y[at[i] % 20,j] += x[i,j]
    """,
    "selects and comparisons": """
        in x: f16[30]  in c: f16[30]  out y: bf16[30]
        for i<30: y[i] = select(x[i] < c[i], x[i] * 2, max(c[i], 0.5))
    """,
    "small floats": """
        in a: f8e4m3fn[12,16]  in b: f8e4m3fn[16,10]  out c: f8e4m3fn[12,10]
        for i<12, j<10, k<16: c[i,j] += a[i,k] * b[k,j]
    """,
    "a tensor in parts": """
        in a: i32[3]  in b: i32[4]  out y: i32[7]
        for i<3: y[i] = a[i]
        for i<4: y[i+3] = b[i]
    """,
    "two sums in one tensor": """
        in a: i32[3,5]  in b: i32[4,5]  out y: i32[9]
        for i<3, k<5: y[i] += a[i,k]
        for i<4, k<5: y[i+2] += b[i,k]
    """,
    "an accumulator that is given": """
        in a: i32[5,6]  inout y: i32[5]
        for i<5, k<6: y[i] += a[i,k]
    """,
    "booleans": """
        in a: i32[5,6]  out any: bool[5]
        for i<5, k<6: any[i] max= a[i,k] > 0
    """,
}


def parsed(text: str) -> Program:
    program = parse(text)
    verify(program)
    return program


def on_host(program: Program, target: Target = MACHINE) -> tuple[Nest, Target]:
    """All statements of ``program`` on the host, one after the other."""
    starts: list[Node] = []
    body: list[Node] = []
    for group in program.groups():
        starts += [call for n in group if (call := host_start(program, n)) is not None]
        inner: tuple[Node, ...] = tuple(host_call(program, n) for n in group)
        for loop in reversed(program.statements[group[0]].seq):
            inner = (Loop(loop.name, (constant(0),), (loop.extent,), 1, inner),)
        body += inner
    nodes: tuple[Node, ...] = (*starts, *body)
    main = target.main.name
    for tensor in program.temps:
        nodes = (Alloc(Buffer(tensor.name, main, tensor.dtype, tensor.shape), nodes),)
    arguments = tuple(Buffer(t.name, main, t.dtype, t.shape) for t in program.tensors if t.role is not Role.TEMP)
    numbers = range(len(program.statements))
    return (
        Nest(arguments, (), nodes, tuple(t.name for t in program.outputs)),
        host_target(program, target, numbers),
    )


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_host_computes_what_the_reference_computes(name: str) -> None:
    program = parsed(PROGRAMS[name])
    nest, target = on_host(program)
    arrays = fill(program, 3, {})
    found = simulate(nest, target, arrays).arrays
    for output, wanted in evaluate(program, arrays).items():
        np.testing.assert_array_equal(found[output], wanted)
        assert found[output].dtype == wanted.dtype


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_host_takes_time(name: str) -> None:
    nest, target = on_host(parsed(PROGRAMS[name]))
    found = simulate_time(nest, target)
    assert found.cycles > 0
    assert found.unit("host").utilisation > 0.5


def test_cycles_are_those_of_scalar_instructions() -> None:
    """Of generic: half a cycle for a load, one for an integer product, one for a store."""
    program = parsed("in a: i32[8]  in b: i32[8]  out y: i32[8]\nfor i<8: y[i] = a[i] * b[i]")
    target = host_target(program, MACHINE, [0])
    load, product, store = 0.5, 1, 1
    assert float(target.instruction("host.0").cycles) == 8 * (2 * load + product + store)


def test_a_step_of_a_recurrence_moves_only_its_own_elements() -> None:
    program = parsed(PROGRAMS["a recurrence"])
    target = host_target(program, MACHINE, [1])
    assert str(target.instruction("host.1").program.statements[0]) == "for i<12, j<12: g[i] += w[i, j] * h[j]"
    assert str(host_call(program, 1)) == "host.1(g[t, 0], w[0, 0], h[t, 0])"
    assert str(host_call(program, 2, {"t": constant(3)}, {"h": "there"})) == "host.2(there[4, 0], g[3, 0], x[3, 0])"


def test_what_is_written_completely_needs_no_start() -> None:
    program = parsed(PROGRAMS["softmax"])
    assert [host_start(program, n) is not None for n in range(4)] == [True, False, True, False]
    parts = parsed(PROGRAMS["two sums in one tensor"])
    assert [host_start(parts, n) is not None for n in range(2)] == [True, False]


def test_a_start_that_is_left_out_is_found() -> None:
    program = parsed(PROGRAMS["sums over steps"])
    nest, target = on_host(program)
    with pytest.raises(SimulationError, match=r"host.0 reads element 0 of y: .* before anything wrote it"):
        simulate(replace(nest, body=nest.body[1:]), target, fill(program, 3, {}))


def test_a_machine_without_a_host_says_what_would_help() -> None:
    program = parsed(PROGRAMS["softmax"])
    alone = replace(MACHINE, units=MACHINE.units[1:])
    with pytest.raises(MappingError) as caught:
        host_target(program, alone, [1], {1: "matmul16: multiplies, the program applies exp"})
    for words in ("statement 1", "exp(x[i, j] - m[i])", "matmul16: multiplies", 'runs = "generic"'):
        assert words in str(caught.value)
    assert host_target(program, alone, []) is alone
