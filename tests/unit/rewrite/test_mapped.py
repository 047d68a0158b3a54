"""Layers of networks derive to the instructions of machines by rules alone, and keep their values."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import dovetail.frontends.functional as fn
from dovetail.frontends.functional import Value, f16, f32
from dovetail.ir.fill import fill
from dovetail.ir.functional.evaluate import evaluate
from dovetail.ir.functional.infer import check
from dovetail.ir.functional.normalise import normalise
from dovetail.ir.functional.term import Definition
from dovetail.ir.functional.text import parse_definition
from dovetail.rewrite.calls import readable_derivation, without_calls
from dovetail.rewrite.mapped import Mapped, map_definition
from dovetail.targets.load import load_target
from tests.unit.rewrite import layers
from tests.unit.rewrite.layers import BYTES, DOUBLES, HALVES, Kinds

GOLDEN = Path(__file__).parents[2] / "golden" / "map-definition"
MACHINES = {"npu-mv": HALVES, "sw26010": DOUBLES, "systolic16": BYTES}
LAYERS: dict[str, Callable[[Kinds], Definition]] = {
    "fully_connected": layers.fully_connected,
    "mlp": layers.mlp,
    "convolution": layers.convolution,
}


def mapped(definition: Definition, machine: str, relaxed: bool = False) -> Mapped:
    return map_definition(definition, load_target(machine), relaxed)


def differs(one: Definition, other: Definition) -> float:
    """The largest difference of what both compute from small whole numbers."""
    data = fill(normalise(one), 0)
    first, second = (np.asarray(next(iter(evaluate(d, data).values())), np.float64) for d in (one, other))
    assert first.any()
    return float(np.abs(first - second).max())


def instructions(found: Mapped) -> list[str]:
    return [operation.instruction.split(".")[0] for operation in found.operations]


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("machine", MACHINES)
def test_a_layer_means_the_same_on_every_machine(machine: str, layer: str) -> None:
    definition = LAYERS[layer](MACHINES[machine])
    found = mapped(definition, machine)
    assert check(found.definition) == check(definition)
    assert differs(definition, without_calls(found.definition)) == 0
    assert differs(definition, found.plain) == 0
    assert found.derivation.kind in ("bit-exact", "reassociating")
    assert found.derivation.end == found.definition


@pytest.mark.parametrize(
    ("machine", "product", "others"),
    [
        ("npu-mv", "MVMul128", ["VVAdd64", "VVRelu"]),
        ("sw26010", "gemm", ["add", "relu"]),
        ("systolic16", "matmul16", ["", ""]),
    ],
)
def test_a_fully_connected_layer_is_a_product_a_sum_and_a_relu(machine: str, product: str, others: list[str]) -> None:
    found = mapped(layers.fully_connected(MACHINES[machine]), machine)
    assert instructions(found) == [product, *others]


def test_the_derivation_of_a_fully_connected_layer_reads_as_the_golden_text(update_golden: bool) -> None:
    found = mapped(layers.fully_connected(HALVES, 256, 256), "npu-mv")
    text = f"{readable_derivation(found.derivation)}\n"
    path = GOLDEN / "fully_connected.txt"
    if update_golden:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text


def test_a_gru_cell_is_on_the_machine_but_for_its_sigmoids() -> None:
    definition = layers.gru(HALVES)
    found = mapped(definition, "npu-mv")
    assert [operation.name for operation in found.on_host if "sigmoid" in operation.reason] == ["update", "reset"]
    assert {"MVMul64", "MVMul128", "VVAdd64", "VVMul128", "VVTanh"} <= set(instructions(found))
    assert differs(definition, without_calls(found.definition)) == 0


def test_a_gru_cell_is_on_the_machine_whole_where_rounding_may_change() -> None:
    definition = layers.gru(HALVES)
    found = mapped(definition, "npu-mv", relaxed=True)
    assert not [operation for operation in found.on_host if "sigmoid" in operation.reason]
    assert found.derivation.kind == "relaxed"
    assert differs(definition, without_calls(found.definition)) < 1e-5


def test_spellings_of_one_layer_derive_to_the_same_instructions() -> None:
    spelled = [
        r"map(\v -> max(v, 0), map(add, zip(map(\r -> reduce(add, 0, map(mul, zip(r, x))), w), b)))",
        r"map(\r c -> max(reduce(add, 0, map(mul, zip(r, x))) + c, 0), zip(w, b))",
        r"map(\c r -> max(0, c + reduce(add, 0, map(mul, zip(x, r)))), zip(b, w))",
        r"let p = map(\r -> reduce(add, 0, map(mul, zip(r, x))), w) in map(\a c -> max(a + c, 0), zip(p, b))",
    ]
    head = "def f(w: f16[256, 128], x: f16[128], b: f32[256]) -> y ="
    found = [instructions(mapped(parse_definition(f"{head} {text}"), "npu-mv")) for text in spelled]
    assert found == [["MVMul128", "VVAdd64", "VVRelu"]] * len(spelled)


def test_sizes_that_do_not_divide_are_padded() -> None:
    definition = layers.fully_connected(HALVES, outputs=200, inputs=100)
    found = mapped(definition, "npu-mv")
    assert instructions(found) == ["MVMul128", "VVAdd64", "VVRelu"]
    assert [step.rule for step in found.derivation.steps].count("pad-sum") == 1
    assert differs(definition, without_calls(found.definition)) == 0


def test_sums_longer_than_an_instruction_are_added_up_by_another() -> None:
    found = mapped(layers.fully_connected(HALVES, 128, 512), "npu-mv")
    text = str(found)
    assert "reduce(\\a b -> join(map(\\a0 b0 -> VVAdd64(a0, b0)" in " ".join(text.split())
    assert "tile-sum" in [step.rule for step in found.derivation.steps]


def test_what_no_instruction_computes_is_left_to_the_host_with_a_reason() -> None:
    @fn.function(x=f32[64])
    def f(x: Value) -> Value:
        return fn.map(lambda v: fn.exp(v) * v, x)

    found = mapped(f, "npu-mv")
    assert [str(operation) for operation in found.operations] == [
        "v1 on the host: no instruction of 'npu-mv' computes exp of f32",
        "y by VVMul64.f32",
    ]


def test_dtypes_that_no_instruction_has_are_left_to_the_host() -> None:
    found = mapped(layers.fully_connected(Kinds(f32, f32)), "npu-mv")
    assert instructions(found) == ["", "VVAdd64", "VVRelu"]


def test_a_scaled_vector_is_multiplied_by_a_row_of_the_number() -> None:
    @fn.function(x=f16[128])
    def f(x: Value) -> Value:
        return fn.map(lambda v: f16(v * 3), x)

    found = mapped(f, "npu-mv")
    assert instructions(found) == ["", "VVMul128"]
    assert "repeat(128, " in str(found)
    assert differs(f, without_calls(found.definition)) == 0


def test_mapping_is_deterministic() -> None:
    one, two = (str(readable_derivation(mapped(layers.mlp(HALVES), "npu-mv").derivation)) for _ in range(2))
    assert one == two


def test_the_page_on_derivation_shows_the_golden_text() -> None:
    page = Path(__file__).parents[3] / "docs" / "how_to" / "derive_a_layer.md"
    golden = (GOLDEN / "fully_connected.txt").read_text(encoding="utf-8")
    assert f"```text\n{golden}```" in page.read_text(encoding="utf-8")


def test_vector_instructions_of_a_processor_are_derived_to_as_well() -> None:
    definition = layers.fully_connected(Kinds(f32, f32), outputs=64, inputs=32)
    found = mapped(definition, "x86-64-v3")
    assert found.operations[0].reason == "no instruction of 'x86-64-v3' computes reduce of f32"
    assert [operation.instruction for operation in found.operations[1:]] == ["add.f32x8", "", "max.f32x8"]
    assert differs(definition, without_calls(found.definition)) == 0
