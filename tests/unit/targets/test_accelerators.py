"""The simulated machines: their constants, what they can run, and that nothing of them is out of reach."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from dovetail.ir.fit import Fit
from dovetail.ir.parse import parse
from dovetail.mapping.find import find_mappings
from dovetail.targets.cost import evaluate_cost
from dovetail.targets.load import host_target, load_target
from dovetail.targets.model import MemoryKind, Target
from dovetail.targets.show import show_target
from tests.unit.cli.command import dovetail

MACHINES = ("npu-mv", "sw26010", "systolic16", "systolic16-serial", "template")
MATMUL = "in a: {x}[256,192] in b: {x}[192,128] out c: {y}[256,128] for i<256, j<128, k<192: c[i,j] += a[i,k] * b[k,j]"


def cycles(target: Target, name: str, **params: int) -> float:
    return evaluate_cost(target.instruction(name).cycles, params)


def latency(target: Target, name: str, **params: int) -> float:
    return evaluate_cost(target.instruction(name).latency, params)


def fits(target: str, program: str, family: str) -> list[Fit]:
    """The fits of a family that cover whole statements."""
    machine = load_target(target)
    found = find_mappings(parse(program), machine, misfits=False).fits
    return [fit for fit in found if fit.node is None and machine.instruction(fit.instruction).family == family]


def plainly(found: list[Fit], loops: str) -> bool:
    """Whether one of ``found`` has these loops and moves nothing but bytes: no transposing, no packing, no padding."""
    return any(
        ", ".join(map(str, fit.loops)) == loops and all(a.kind == "convert" for a in fit.adapters) for fit in found
    )


# -- all of them


@pytest.mark.parametrize("name", MACHINES)
def test_a_simulated_machine_is_well_formed(name: str) -> None:
    done = dovetail("targets", "check", name)
    assert done.code == 0, done.err
    assert f"'{name}' is well formed: all {len(load_target(name).by_name)} instructions are simulated" in done.out


@pytest.mark.parametrize("name", MACHINES)
def test_a_simulated_machine_emits_nothing_and_has_a_host_for_the_rest(name: str) -> None:
    target = load_target(name)
    assert target.llvm is None and not any(i.emit or i.call for i in target.instructions)
    host = host_target(target)
    assert host is not None and host.name == "generic"
    assert "host         1, runs the scalar instructions of generic" in show_target(target)


@pytest.mark.parametrize("name", MACHINES)
def test_what_is_moved_is_moved_in_the_background(name: str) -> None:
    target = load_target(name)
    for instruction in target.instructions:
        if instruction.is_copy and any(o.memory == target.main.name for o in instruction.operands):
            assert instruction.is_async, instruction.name
            params = {size.name: size.high for size in instruction.program.sizes}
            whole = evaluate_cost(instruction.cycles, params)
            assert whole > target.main.startup_cycles and evaluate_cost(instruction.latency, params) == whole


@pytest.mark.parametrize("name", MACHINES)
def test_every_scratchpad_can_be_filled_and_emptied_in_any_order_of_elements(name: str) -> None:
    """Somewhere on the way from main memory and back both strides are free, so that a transposed matrix can come."""
    target = load_target(name)
    free = [
        instruction
        for instruction in target.instructions
        for operand in instruction.operands
        if operand.memory == target.main.name
        and operand.strides
        and not any(isinstance(s, int) for s in operand.strides)
    ]
    written = {i.operand(i.program.statements[0].out.tensor).memory for i in free}
    assert target.main.name in written and len(written) > 1


@pytest.mark.parametrize(
    ("name", "dtypes", "family", "loops"),
    [
        ("npu-mv", ("f16", "f32"), "MMMul", "i = i, j = j, k = k"),
        ("npu-mv", ("f16", "f16"), "MMMul", "i = i, j = j, k = k"),
        ("npu-mv", ("f8e4m3fn", "f32"), "MMMul", "i = i, j = j, k = k"),
        ("sw26010", ("f64", "f64"), "gemm", "j = i, i = j, k = k"),
        ("systolic16", ("i8", "i32"), "matmul16", "i = i, j = j, k = k"),
        ("systolic16-serial", ("i8", "i32"), "matmul16", "i = i, j = j, k = k"),
        ("template", ("f32", "f32"), "matmul", "i = i, j = j, k = k"),
    ],
)
def test_a_matrix_product_lands_on_the_matrix_unit(name: str, dtypes: tuple[str, str], family: str, loops: str) -> None:
    assert plainly(fits(name, MATMUL.format(x=dtypes[0], y=dtypes[1]), family), loops)


@pytest.mark.parametrize(
    ("name", "program", "family", "loops"),
    [
        (
            "sw26010",
            "in x: f64[10,10,64,128] const w: f64[3,3,64,64] out y: f64[8,8,64,128] for p<8, q<8, o<64, n<128, r<3, "
            "s<3, c<64: y[p,q,o,n] += x[p+r,q+s,c,n] * w[r,s,o,c]",
            "gemm",
            "j = o, i = n, k = c",
        ),
        (
            "systolic16",
            "in x: i8[10,10,64] const w: i8[3,3,64,32] out y: i32[8,8,32] for p<8, q<8, o<32, r<3, s<3, c<64: "
            "y[p,q,o] += x[p+r,q+s,c] * w[r,s,c,o]",
            "matmul16",
            "i = q, j = o, k = c",
        ),
    ],
)
def test_a_convolution_lands_on_the_matrix_unit(name: str, program: str, family: str, loops: str) -> None:
    assert plainly(fits(name, program, family), loops)


# -- npu-mv


@pytest.mark.parametrize(
    ("program", "families"),
    [
        ("in a: f16[256] in b: f16[256] out y: f16[256] for i<256: y[i] = a[i] + b[i]", "VVAdd32 VVAdd64 ScalarAdd"),
        ("in a: f16[256] in b: f16[256] out y: f16[256] for i<256: y[i] = a[i] * b[i]", "VVMul64 VVMul128 ScalarMul"),
        ("in a: f32[256] in b: f16[256] out y: f16[256] for i<256: y[i] = a[i] + b[i]", "VVAdd32 VVAdd64"),
        ("in a: f16[256] out y: f16[256] for i<256: y[i] = max(a[i], 0)", "VVRelu"),
        ("in a: f32[256] out y: f32[256] for i<256: y[i] = tanh(a[i])", "VVTanh"),
        ("in w: f16[256,256] in x: f16[256] out y: f16[256] for i<256, k<256: y[i] += w[i,k]*x[k]", "MVMul64 MVMul128"),
        ("in w: f8e4m3fn[256,256] in x: f16[256] out y: f32[256] for i<256, k<256: y[i] += w[i,k] * x[k]", "MVMul64"),
        ("in a: f16[129,129] in b: f16[129] out y: f16[129,129] for i<129, j<129: y[i,j] = a[i,j] + b[j]", "MVAdd129"),
        ("in a: f16[128,64] in b: f16[64] out y: f16[128,64] for i<128, j<64: y[i,j] = a[i,j] + b[j]", "MVAdd64"),
    ],
)  # fmt: skip
def test_an_operator_lands_on_the_sized_instructions_of_its_kind(program: str, families: str) -> None:
    for family in families.split():
        found = fits("npu-mv", program, family)
        assert any(all(a.kind == "convert" for a in fit.adapters) for fit in found), family


def test_a_fully_connected_layer_is_a_product_a_sum_and_a_rectifier() -> None:
    layer = (
        "in w: f16[512,256] in x: f16[256] in b: f16[512] out y: f16[512] temp t: f32[512] temp u: f32[512] "
        "for i<512, k<256: t[i] += w[i,k] * x[k] for i<512: u[i] = t[i] + b[i] for i<512: y[i] = max(u[i], 0)"
    )
    for number, family in enumerate(("MVMul128", "VVAdd64", "VVRelu")):
        assert any(fit.statement == number for fit in fits("npu-mv", layer, family))


def test_npu_mv_has_its_stated_rates() -> None:
    target = load_target("npu-mv")
    assert target.frequency_hz == 250e6
    assert {m.name: m.bytes for m in target.memories if m.kind is MemoryKind.SCRATCHPAD} == {
        "matrix": 32 << 20, "vector": 1 << 20, "output": 1 << 20,
    }  # fmt: skip
    assert (target.main.bytes_per_cycle, target.main.startup_cycles) == (64, 100)
    for name, issue in (("MVMul64.f16.f16", 1), ("MVMul128.f16.f16", 4), ("MVAdd64.f16", 1), ("MVAdd129.f16", 5)):
        assert (cycles(target, name), latency(target, name)) == (issue, 60)
    assert cycles(target, "MMMul.f16.f16", m=7, n=128, p=192) == 7 * 128 * 192 / 4096
    assert latency(target, "MMMul.f16.f16", m=1, n=64, p=64) == 60
    for name in ("VVAdd32.f16", "VVAdd64.f16", "VVMul64.f16", "VVMul128.f16"):
        assert (cycles(target, name), latency(target, name)) == (1, 12)
    assert [cycles(target, "VVTanh.f16", n=n) for n in (1, 128, 129)] == [1, 1, 2]
    assert (latency(target, "VVTanh.f16", n=128), latency(target, "VVRelu.f16", n=128)) == (30, 12)
    assert cycles(target, "ScalarAdd.f16") == cycles(target, "ScalarMul.f32") == 1
    assert cycles(target, "toChipMatrix.f16", m=64, p=64) == 100 + 64 * 64 * 2 / 64
    assert cycles(target, "toChipMatrix.f8e4m3fn", m=64, p=64) == 100 + 64 * 64 / 64
    assert cycles(target, "toDram.f32.f16", m=1, p=64) == 102


# -- sw26010


def test_sw26010_has_its_stated_rates() -> None:
    target = load_target("sw26010")
    assert target.frequency_hz == 1.45e9
    assert target.unit("cpe").count == (8, 8)
    assert (target.memory("ldm").bytes, target.memory("ldm").per) == (60 << 10, "cpe")
    assert (target.main.bytes_per_cycle, target.main.startup_cycles) == (19, 270)
    gemm = target.instruction("gemm")
    assert {str(c) for c in gemm.constraints} == {"m % 128 == 0", "n % 32 == 0", "p % 8 == 0"}
    assert cycles(target, "gemm", m=128, n=64, p=64) == 120 + 128 * 64 * 64 / 235
    for name, along in (("row_broadcast", 1), ("column_broadcast", 0)):
        found = target.instruction(name)
        assert (found.broadcast, found.along) == ("cpe", along)
        assert (cycles(target, name, n=64), latency(target, name, n=64)) == (64, 75)
    assert cycles(target, "vector_add", n=256) == 64 and cycles(target, "add", m=64, n=128) == 64 * 128 / 4 / 64


def test_dma_is_served_in_blocks_of_128_bytes() -> None:
    """A row of blkM elements is eight blocks of blkM bytes, one for each CPE of the grid's row."""
    target = load_target("sw26010")
    for columns in (8, 64, 128, 136, 256):
        block = 8 * columns / 8
        wanted = 270 + 32 * 8 * 128 * math.ceil(block / 128) / 19
        assert cycles(target, "dma_get", m=32, n=columns) == cycles(target, "dma_put", m=32, n=columns) == wanted
    assert cycles(target, "dma_get_strided", m=2, n=3) == 270 + 6 * 128 / 19


def test_a_spread_matrix_lies_evenly_on_the_grid() -> None:
    """Rows and columns on all 64 CPEs, 1/64 each, no two elements in one place."""
    layout = next(layout for layout in load_target("sw26010").layouts if layout.name == "spread")
    held: dict[tuple[int, ...], set[tuple[int, ...]]] = {}
    for r in range(32):
        for c in range(128):
            at = {"r": r, "c": c}
            unit = tuple(index.evaluate(at) for index in layout.units)
            held.setdefault(unit, set()).add(tuple(index.evaluate(at) for index in layout.places))
    assert len(held) == 64 and {len(places) for places in held.values()} == {32 * 128 // 64}


# -- systolic16


def test_systolic16_has_its_stated_sizes() -> None:
    target = load_target("systolic16")
    assert (target.memory("scratchpad").bytes, target.memory("accumulator").bytes) == (256 << 10, 64 << 10)
    assert (target.main.bytes_per_cycle, target.main.startup_cycles) == (16, 100)
    assert str(target.instruction("matmul16").program.statements[0]) == (
        "for i<m, j<16, k<16: acc[i, j] += a[i, k] * w[k, j]"
    )
    weights = target.instruction("load_weights")
    assert weights.is_async and weights.unit != target.instruction("matmul16").unit
    assert target.memory("weights").bytes == 2 * 16 * 16
    assert cycles(target, "move_in", m=64, p=48) == 100 + 64 * 48 / 16


@pytest.mark.parametrize(("m", "n", "k", "reported"), [(64, 32, 48, 659), (196, 64, 64, 3871)])
def test_the_serial_array_counts_as_scale_sim_does(m: int, n: int, k: int, reported: int) -> None:
    """SCALE-Sim 3.0.0, weight-stationary, 16x16, reports the number of the last cycle, counted from 0."""
    target = load_target("systolic16-serial")
    tiles = math.ceil(n / 16) * math.ceil(k / 16)
    assert target.instruction("load_weights").unit == target.instruction("matmul16").unit == "array"
    assert not target.instruction("load_weights").is_async
    assert tiles * (cycles(target, "load_weights") + cycles(target, "matmul16", m=m)) - 1 == reported


# -- a new one


def test_a_new_target_loads_checks_and_maps_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = dovetail("targets", "new", "my-chip")
    assert done.code == 0 and "wrote my-chip.toml" in done.out
    assert load_target("my-chip.toml").name == "my-chip"
    assert dovetail("targets", "check", "my-chip.toml").code == 0
    mapped = dovetail("map", "--target", "my-chip.toml", "--text", MATMUL.format(x="f32", y="f32"))
    assert mapped.code == 0 and "matmul" in mapped.out
    text = (tmp_path / "my-chip.toml").read_text()
    assert "dovetail targets check my-chip.toml" in text and "FILE" not in text


def test_a_new_target_overwrites_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text("kept")
    done = dovetail("targets", "new", "mine")
    assert (done.code, (tmp_path / "mine.toml").read_text()) == (2, "kept")
    assert "there is a file 'mine.toml' already" in done.err


@pytest.mark.parametrize(
    "name", ["", "../up", "a/b", "1st", "-x", "x.toml", "a b", "a\n", "x" * 65, "host", "generic", "template"]
)
def test_a_new_target_needs_a_name_of_its_own(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = dovetail("targets", "new", "--", name)
    assert done.code == 2 and "error: " in done.err and "try: " in done.err
    assert list(tmp_path.iterdir()) == []


# -- what the loader lets pass


def test_a_cost_may_divide_by_what_is_never_zero(tmp_path: Path) -> None:
    text = (tmp_path / "t.toml", Path(__file__).parents[2] / "errors/target/cost-divides-by-zero.txt")
    source = text[1].read_text().split("----\n")[0].replace("n % 2 == 0", "n <= 7")
    text[0].write_text(source)
    assert cycles(load_target(text[0]), "add", n=4) == 2


def test_a_shipped_target_is_not_called_like_the_file_to_copy() -> None:
    listed = dovetail("targets").out
    assert "\nnpu-mv " in listed and "simulated" in listed and "\ntemplate " not in listed
