"""Matrix multiplications and convolutions, forward and backward, on vector and matrix instructions."""

from __future__ import annotations

from itertools import product

import pytest

from dovetail.mapping.find import find_mappings
from dovetail.mapping.prove import prove
from tests.unit.mapping import programs
from tests.unit.mapping.needles import DOT, FMA, MATRIX, adapters, bound, find, lab_target, machine
from tests.unit.mapping.programs import program


@pytest.mark.parametrize(("x", "w", "y"), list(product(("m,c", "c,m"), ("c,n", "n,c"), ("m,n", "n,m"))))
def test_a_matrix_multiplication_fits_in_all_transposes(x: str, w: str, y: str) -> None:
    extents = {"m": 64, "n": 80, "c": 48}

    def shape(indices: str) -> str:
        return ",".join(str(extents[i]) for i in indices.split(","))

    text = (
        f"in x: f32[{shape(x)}] in w: f32[{shape(w)}] out y: f32[{shape(y)}] "
        f"for m<64, n<80, c<48: y[{y}] += x[{x}] * w[{w}]"
    )
    fit = find(find_mappings(program(text), machine(MATRIX)), {"i": "m", "j": "n", "k": "c"}, a="x", w="w")
    assert fit is not None
    expected = {
        *(["transpose a"] if x == "c,m" else []),
        *(["transpose w"] if w == "n,c" else []),
        *(["transpose acc"] if y == "n,m" else []),
    }
    assert adapters(fit) == expected
    assert not any(a.kind == "pad" for a in fit.adapters)


def test_lanes_of_a_multiply_add_run_over_columns_rows_or_nothing() -> None:
    result = find_mappings(program(programs.MATMUL), machine(FMA))
    columns = find(result, {"l": "n"}, a="x", b="w")
    assert columns is not None
    assert adapters(columns) == {"broadcast a"}
    rows = find(result, {"l": "m"}, a="x", b="w")
    assert rows is not None
    assert adapters(rows) == {"broadcast b", "pack a", "pack acc"}
    alone = find(result, {"l": ""}, a="x", b="w")
    assert alone is not None
    assert {a.kind for a in alone.adapters} == {"pad"}
    assert {bound(fit)["l"] for fit in result.fits} == {"m", "n", "", "m*n"}


def test_lanes_run_over_a_reduction_only_where_the_instruction_reduces_them() -> None:
    result = find_mappings(program(programs.MATMUL), machine(FMA, DOT))
    assert {bound(fit)["l"] for fit in result.fits if fit.instruction == "dot"} == {"c", ""}
    assert not any("c" in bound(fit)["l"] for fit in result.fits if fit.instruction == "fma")


def test_a_batch_stays_outside_the_instruction() -> None:
    result = find_mappings(program(programs.BATCHED), machine(MATRIX))
    assert find(result, {"i": "m", "j": "n", "k": "c"}, a="x") is not None
    assert not any("b" in "*".join(bound(fit).values()).split("*") for fit in result.fits)


CONVOLUTIONS = {
    "one dimension": (programs.CONV1D, {"i": "n*p", "j": "k", "k": "c*r"}),
    "two dimensions": (programs.CONV2D, {"i": "p*q", "j": "k", "k": "c*r"}),
    "three dimensions": (programs.CONV3D, {"i": "p*q", "j": "k", "k": "c*s"}),
    "strided": (programs.STRIDED, {"i": "p*q", "j": "k", "k": "c"}),
    "dilated": (programs.DILATED, {"i": "p*q", "j": "k", "k": "c"}),
    "grouped": (programs.GROUPED, {"i": "p*q", "j": "k", "k": "c"}),
    "backward data": (programs.BACKWARD_DATA, {"i": "p*q", "j": "c", "k": "k"}),
    "backward weights": (programs.BACKWARD_WEIGHTS, {"i": "k", "j": "c*s", "k": "p*q"}),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_a_convolution_lands_on_the_matrix_unit_and_is_proven(name: str) -> None:
    text, loops = CONVOLUTIONS[name]
    source = program(text)
    target = machine(MATRIX)
    fit = find(find_mappings(source, target, misfits=False), loops)
    assert fit is not None
    assert "fuse" in fit.transformations
    assert all(check.passed for check in prove(source, fit, MATRIX))


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_a_convolution_lands_on_vectors(name: str) -> None:
    text, loops = CONVOLUTIONS[name]
    result = find_mappings(program(text), machine(FMA), misfits=False)
    for loop in (*loops["i"].split("*"), *loops["j"].split("*")):
        assert find(result, {"l": loop}) is not None


def test_a_strided_convolution_packs_its_input_along_the_row() -> None:
    result = find_mappings(program(programs.STRIDED), machine(FMA))
    fit = find(result, {"l": "q"}, a="x")
    assert fit is not None
    assert adapters(fit) == {"pack a", "broadcast b"}
    dense = find(find_mappings(program(programs.CONV2D), machine(FMA)), {"l": "q"}, a="x")
    assert dense is not None
    assert adapters(dense) == {"broadcast b"}


def test_a_padded_convolution_fills_what_the_guard_removes() -> None:
    result = find_mappings(program(programs.PADDED), machine(FMA))
    over_channels = find(result, {"l": "k"}, a="x")
    assert over_channels is not None
    assert not any(a.kind == "zero-fill" for a in over_channels.adapters), "the guard is the same in every lane"
    over_columns = find(result, {"l": "q"}, a="x")
    assert over_columns is not None
    assert {"zero-fill a", "zero-fill b"} <= adapters(over_columns), "0 * inf is NaN: both factors are filled"


def test_a_padded_convolution_of_integers_fills_one_factor() -> None:
    result = find_mappings(program(programs.PADDED, "i8", "i32"), lab_target("toy16"))
    fit = find(result, {"i": "p*q", "j": "k", "k": "c"}, a="x")
    assert fit is not None
    assert "zero-fill a" in adapters(fit)
    assert "zero-fill w" not in adapters(fit)


def test_a_padded_convolution_of_floats_wants_finite_weights_on_a_matrix_unit() -> None:
    source, target = program(programs.PADDED), machine(MATRIX)
    loops = {"i": "p*q", "j": "k", "k": "c"}
    assert find(find_mappings(source, target), loops, a="x") is None
    fit = find(find_mappings(source, target, allow=frozenset({"finite"})), loops, a="x")
    assert fit is not None
    assert "finite w" in adapters(fit)
    assert all(check.passed for check in prove(source, fit, MATRIX))


def test_a_depthwise_convolution_has_no_second_output_loop() -> None:
    result = find_mappings(program(programs.DEPTHWISE), machine(MATRIX))
    assert result.fits
    assert not any(bound(fit)["i"] and bound(fit)["j"] for fit in result.fits)
    assert find(result, {"i": "p*q", "j": "", "k": "r*s"}) is not None


def test_two_contributions_to_one_element_never_meet_in_one_call() -> None:
    result = find_mappings(program(programs.BACKWARD_DATA), machine(FMA, MATRIX))
    assert find(result, {"l": "p"}) is not None
    assert find(result, {"l": "r"}) is not None
    assert find(result, {"l": "p*r"}) is None, "d[.., p + r, ..] is one element for several p and r"
    assert find(result, {"l": "q*s"}) is None
    assert not any({bound(fit).get("i"), bound(fit).get("j")} == {"p", "r"} for fit in result.fits)


def test_the_matrix_multiplication_in_a_separable_pair_is_found() -> None:
    result = find_mappings(program(programs.SEPARABLE, "i8", "i32"), lab_target("toy16"))
    fit = find(result, {"i": "p*q", "j": "k", "k": "c"}, a="z", w="w")
    assert fit is not None
    assert fit.statement == 1
    assert fit.instruction == "matmul16"
    assert adapters(fit) == set()
    assert fit.transformations == ("split", "fuse")


@pytest.mark.parametrize(
    ("name", "inputs", "out", "instruction", "loops"),
    [
        ("amx", "i8", "i32", "tdpbssd", {"i": "m", "j": "n", "k": "c"}),
        ("amx", "bf16", "f32", "tdpbf16ps", {"i": "m", "j": "n", "k": "c"}),
        ("hopper", "bf16", "f32", "wgmma", {"i": "m", "j": "n", "k": "c"}),
        ("sme", "f32", "f32", "fmopa", {"i": "m", "j": "n"}),
        ("sme", "i8", "i32", "smopa", {"i": "m", "j": "n", "k": "c"}),
        ("engine", "f32", "f32", "gemm", {"i": "m", "j": "n", "k": "c"}),
        ("toy16", "i8", "i32", "matmul16", {"i": "m", "j": "n", "k": "c"}),
    ],
)
def test_every_machine_of_the_lab_maps_a_matrix_multiplication(
    name: str, inputs: str, out: str, instruction: str, loops: dict[str, str]
) -> None:
    source = program(programs.MATMUL, inputs, out)
    target = lab_target(name)
    result = find_mappings(source, target, misfits=False)
    fits = [fit for fit in result.fits if fit.instruction.startswith(instruction) and bound(fit) == loops]
    assert fits
    for fit in fits:
        assert all(check.passed for check in prove(source, fit, target.instruction(fit.instruction)))


def test_a_run_time_size_is_padded_unless_it_divides() -> None:
    text = (
        "size r in 1..64 in x: f32[8*r,48] in w: f32[48,r] out y: f32[8*r,r] "
        "for m<8*r, n<r, c<48: y[m,n] += x[m,c] * w[c,n]"
    )
    source = program(text)
    result = find_mappings(source, machine(FMA))
    rows, columns = find(result, {"l": "m"}), find(result, {"l": "n"})
    assert rows is not None
    assert columns is not None
    assert not any(a.kind == "pad" for a in rows.adapters)
    assert any(a.kind == "pad" for a in columns.adapters)
    assert all(check.passed for fit in result.fits for check in prove(source, fit, FMA))
