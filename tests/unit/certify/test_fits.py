"""Every operation of a leaf is done by an instruction that fits it."""

from dataclasses import replace

import pytest

from dovetail.certify.fits import fit_checks, leaf_program
from dovetail.ir.certificate import Check
from dovetail.ir.nest import Alloc, Call, Loop, Nest, Node, Parallel, When
from dovetail.ir.parse import parse
from dovetail.ir.plan import Leaf
from dovetail.ir.program import Program
from dovetail.schedule.collapse import collapse
from dovetail.schedule.default import default_plan
from dovetail.schedule.lower.build import build_nest
from dovetail.targets.load import load_target

HOST = load_target("x86-64-v3")
PROGRAMS = {
    "product": "in a: f32[8,9] in b: f32[9,16] out c: f32[8,16]\nfor i<8, j<16, k<9: c[i,j] += a[i,k] * b[k,j]",
    "dot": "in a: f32[100] in b: f32[100] out c: f32[]\nfor k<100: c[] += a[k] * b[k]",
    "largest": "in x: f32[5,70] out y: f32[5]\nfor i<5, k<70: y[i] max= x[i,k]",
    "chain": "in x: f32[40] in z: f32[40] out y: f32[40]\nfor i<40: y[i] = max(x[i] * 2 + exp(z[i]), 0)",
    "small floats": "in x: f16[40] out y: f16[]\nfor i<40: y[] += f16(x[i] * x[i])",
    "largest product": "in a: f32[40] in b: f32[40] out c: f32[]\nfor k<40: c[] max= a[k] * b[k]",
    "index of the largest": "in x: f32[23] in m: f32[1] out i: i64[]\nfor k<23: i[] min= select(x[k] == m[0], k, 23)",
    "copy": "in x: f32[6,7] out y: f32[7,6]\nfor i<7, j<6: y[i,j] = x[j,i]",
    "nothing": "in x: f32[6] out y: f32[6]\nfor i<6 where i >= 6: y[i] += x[i]",
}


def checks(program: Program, nest: Nest | None = None) -> tuple[Check, ...]:
    flat = collapse(program)
    plan = default_plan(flat, HOST, 1)
    return fit_checks(flat, plan, nest or build_nest(flat, plan, HOST), HOST)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_instructions_of_a_nest_fit_and_are_proven(name: str) -> None:
    found = checks(parse(PROGRAMS[name]))
    assert all(check.passed for check in found), found


def test_a_product_is_done_by_multiply_adds() -> None:
    found = checks(parse(PROGRAMS["product"]))
    assert found[0].detail == "fma.f32x8"
    assert {check.method for check in found} == {"unification", "isl"}


def test_partial_results_are_joined_by_a_fit_of_their_own() -> None:
    assert checks(parse(PROGRAMS["dot"]))[0].detail == "fma.f32x8, reduce_add.f32x8"


def test_a_nest_that_calls_the_wrong_instruction_is_found_out() -> None:
    program = parse(PROGRAMS["product"])
    flat = collapse(program)
    nest = build_nest(flat, default_plan(flat, HOST, 1), HOST)
    wrong = replace(nest, body=tuple(renamed(node, "fma.f32x8", "max.f32x8") for node in nest.body))
    (found,) = checks(program, wrong)
    assert not found.passed
    assert found.detail == "nothing that the nest calls does c[i, j] += a[i, k] * b[k, j]"


def test_lanes_along_a_sum_are_two_statements() -> None:
    done = leaf_program(parse(PROGRAMS["dot"]), (Leaf(0, "k", 8),))
    assert [str(s) for s in done.program.statements] == [
        "seq k<13: for lane<8: partial.0[lane] += a[8 * k + lane] * b[8 * k + lane]",
        "for lane<8: c[] += partial.0[lane]",
    ]


def renamed(node: Node, old: str, new: str) -> Node:
    """``node`` with another instruction in place of ``old``."""
    if isinstance(node, Call):
        return replace(node, instruction=new) if node.instruction == old else node
    if isinstance(node, When):
        other = tuple(renamed(n, old, new) for n in node.otherwise)
        return replace(node, body=tuple(renamed(n, old, new) for n in node.body), otherwise=other)
    if isinstance(node, Loop | Parallel | Alloc):
        return replace(node, body=tuple(renamed(n, old, new) for n in node.body))
    return node
