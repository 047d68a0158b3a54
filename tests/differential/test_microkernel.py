"""An expert's microkernel beside a target file: found, planned around, packed for, called, and exact at every edge."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dovetail.artefacts import artefacts, planned
from dovetail.base.errors import PlanError, TargetError
from dovetail.codegen.instruction_check import Checked, check_instruction
from dovetail.ir.nest import calls
from dovetail.ir.plan import Leaf, Plan, Tile, plan_from_json
from dovetail.ir.program import Program
from dovetail.mapping.tiles import tile_fits
from dovetail.pipeline import compile, mappings, program
from dovetail.runtime.beside import symbols_beside
from dovetail.runtime.jit import load_object
from dovetail.schedule.collapse import collapse
from dovetail.schedule.lower.build import build_nest
from dovetail.targets.load import load_target
from dovetail.targets.model import Instruction, Target
from tests.differential.kernels import assert_exact
from tests.microkernels import packed, strided, transpose, write_object

HEAD = 'name = "expert"\ninherits = "x86-64-v3"\n\n[[instruction]]\n'
STRIDED = """\
name = "gemm6x16"
computes = "for i<6, j<16, k<n: c[i, j] += a[i, k] * b[k, j]"
operands = { c = "f32 @ memory [ldc, 1]", a = "f32 @ memory [lda, ska]", b = "f32 @ memory [ldb, 1]" }
params = { n = "1..4096" }
cycles = "n / 8"
call = "sgemm_6x16"
object = "sgemm.o"
"""
IN_EIGHTS = STRIDED.replace('params = { n = "1..4096" }', 'params = { n = "8..64" }\nwhere = ["n % 8 == 0"]')
PACKED = """\
name = "panels6x16"
computes = "for i<6, j<16, k<n: c[i, j] += a[k, i] * b[k, j]"
operands = { c = "f32 @ memory [ldc, 1]", a = "f32 @ memory", b = "f32 @ memory" }
params = { n = "1..256" }
cycles = "n / 8"
call = "sgemm_panels"
object = "sgemm.o"
"""
TRANSPOSE = """\
name = "transpose4x8"
computes = "for i<4, j<8: y[j, i] = x[i, j]"
operands = { y = "f32 @ memory [ldy, 1]", x = "f32 @ memory [ldx, 1]" }
cycles = 8
call = "transpose4x8"
object = "sgemm.o"
"""
TABLES = {"strided": STRIDED, "in eights": IN_EIGHTS, "panels": PACKED, "transpose": TRANSPOSE}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Target files and the object they call into."""
    found = tmp_path_factory.mktemp("expert")
    text = strided("sgemm_6x16", 6, 16) + packed("sgemm_panels", 6, 16) + transpose("transpose4x8", 4, 8)
    write_object(found / "sgemm.o", text)
    for name, table in TABLES.items():
        (found / f"{name}.toml").write_text(HEAD + table)
    return found


def matmul(m: int, n: int, k: int, a: str = "ik", b: str = "kj") -> str:
    size = {"i": m, "j": n, "k": k}
    shapes = [f"f32[{size[t[0]]},{size[t[1]]}]" for t in (a, b)]
    loops = f"for i<{m}, j<{n}, k<{k}: c[i,j] += a[{a[0]},{a[1]}] * b[{b[0]},{b[1]}]"
    return f"in a: {shapes[0]}  in b: {shapes[1]}  out c: f32[{m},{n}]\n{loops}"


def conv(c: int, k: int, h: int, taps: int, pad: int = 0) -> str:
    out = h - taps + 1 + 2 * pad
    at = f"-{pad}" if pad else ""
    inside = f" where p+r >= {pad}, p+r < {h + pad}, q+s >= {pad}, q+s < {h + pad}" if pad else ""
    return (
        f"in x: f32[1,{c},{h},{h}]  const w: f32[{k},{c},{taps},{taps}]  out y: f32[1,{k},{out},{out}]\n"
        f"for n<1, k<{k}, p<{out}, q<{out}, c<{c}, r<{taps}, s<{taps}{inside}: "
        f"y[n,k,p,q] += x[n,c,p+r{at},q+s{at}] * w[k,c,r,s]"
    )


PROGRAMS = {
    "whole tiles": matmul(96, 128, 80),
    "edges of i and j": matmul(40, 50, 40),
    "edges of i and j, a transposed": matmul(40, 50, 40, "ki"),
    "edges of i and j, b transposed": matmul(40, 50, 40, "ik", "jk"),
    "edges of i and j, both transposed": matmul(40, 50, 40, "ki", "jk"),
    "a reduction longer than a call": matmul(25, 65, 5000),
    "sums that go on from what is there": matmul(40, 50, 40).replace("out c", "inout c"),
    "batches": (
        "in a: f32[3,25,40]  in b: f32[3,40,66]  out c: f32[3,25,66]\n"
        "for n<3, i<25, j<66, k<40: c[n,i,j] += a[n,i,k] * b[n,k,j]"
    ),
    "a fused bias": (
        "in a: f32[40,48]  const b: f32[48,50]  in z: f32[50]  temp t: f32[40,50]  out c: f32[40,50]\n"
        "for i<40, j<50, k<48: t[i,j] += a[i,k] * b[k,j]\nfor i<40, j<50: c[i,j] = max(t[i,j] + z[j], 0.0)"
    ),
    "1x1 convolution": conv(24, 38, 14, 1),
    "3x3 convolution": conv(24, 38, 34, 3),
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize(("kind", "threads"), [("strided", 1), ("in eights", 2), ("panels", 2)])
def test_a_microkernel_does_contractions_exactly(folder: Path, kind: str, name: str, threads: int) -> None:
    kernel = compile(program(PROGRAMS[name]), folder / f"{kind}.toml", threads)
    assert _uses(kernel.plan), kernel.plan
    assert_exact(kernel)


@pytest.mark.parametrize("sizes", [(1, 1, 1), (6, 16, 8), (7, 40, 9), (160, 160, 160), (13, 64, 0), (12, 33, 63)])
@pytest.mark.parametrize("kind", ["strided", "panels"])
def test_sizes_known_at_run_time_are_exact(folder: Path, kind: str, sizes: tuple[int, int, int]) -> None:
    text = matmul(64, 64, 64).replace("64", "{}")
    shapes = text.format("M", "K", "K", "N", "M", "N", "M", "N", "K")
    head = "size M in 1..160  size N in 1..160  size K in 0..160\n"
    kernel = compile(program(head + shapes), folder / f"{kind}.toml", 2)
    assert _uses(kernel.plan)
    assert_exact(kernel, dict(zip("MNK", sizes, strict=True)))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("reduced", ["c", "r"])
def test_tiles_that_a_condition_cuts_are_exact(folder: Path, reduced: str, threads: int) -> None:
    """The padding of a convolution as ``where``: calls inside, lanes or single points at the border."""
    source = program(conv(9, 14, 34, 3, pad=1))
    around = {"c": ("p", "r", "s"), "r": ("c", "p", "s")}[reduced]
    node: Tile | Leaf = Leaf(0, "", 1, "gemm6x16", (("i", ("k",)), ("j", ("q",)), ("k", (reduced,))))
    for loop, step in (*((n, 1) for n in around if n != "p"), ("q", 16), ("k", 6), ("p", 1)):
        node = Tile(f"t{loop}", ((0, loop),), step, (node,), "core" if loop == "p" else "")
    kernel = compile(source, folder / "strided.toml", threads, plan=Plan((node,)))
    assert "gemm6x16" in str(kernel.certificate)
    assert_exact(kernel)


FUSED = """\
in x: f32[20,7,8]  in w: f32[12,20]  out y: f32[12,7,8]  out z: f32[8,7]
for k<12, p<7, q<8, c<20: y[k,p,q] += x[c,p,q] * w[k,c]
for p<7, q<8: z[q,p] = x[0,p,q]
"""


def test_a_loop_of_the_instruction_may_run_over_two(folder: Path) -> None:
    """Rows of eight, two at a time, are the sixteen of a call; the seventh row is an edge."""
    leaf = Leaf(0, "q", 8, "gemm6x16", (("i", ("k",)), ("j", ("p", "q")), ("k", ("c",))))
    tiles = Tile("k", ((0, "k"),), 6, (Tile("p", ((0, "p"),), 2, (leaf,)),), "core")
    source, target = program(FUSED), load_target(folder / "strided.toml")
    kernel = compile(source, target, 2, plan=Plan((tiles, Leaf(1))))
    assert "j = p*q" in str(kernel.plan)
    assert_exact(kernel)
    halved = Tile("q", ((0, "q"),), 4, (leaf,))
    with pytest.raises(PlanError, match="'q' is fused and not whole"):
        build_nest(collapse(source), Plan((halved, Leaf(1))), target)


@pytest.mark.parametrize(("m", "n"), [(40, 80), (41, 83), (3, 5)])
def test_an_instruction_may_move_tiles(folder: Path, m: int, n: int) -> None:
    text = f"in x: f32[{m},{n}]  out y: f32[{n},{m}]\nfor i<{m}, j<{n}: y[j,i] = x[i,j]"
    kernel = compile(program(text), folder / "transpose.toml", 2)
    assert _uses(kernel.plan) or m < 4
    assert_exact(kernel)


def test_map_lists_the_microkernel(folder: Path) -> None:
    found = mappings(program(PROGRAMS["3x3 convolution"]), folder / "strided.toml").fits
    loops = {str(fit) for fit in found if fit.instruction == "gemm6x16"}
    assert "gemm6x16 on statement 0 with i = k, j = q, k = c" in loops


def test_a_dear_microkernel_loses_against_lanes(folder: Path) -> None:
    (folder / "dear.toml").write_text(HEAD + STRIDED.replace("n / 8", "100 * n"))
    assert not _uses(planned(program(PROGRAMS["whole tiles"]), load_target(folder / "dear.toml"), 1))


def test_targets_without_tile_instructions_are_not_searched() -> None:
    target = load_target("x86-64-v3")
    assert target.tile_instructions == () and tile_fits(program(PROGRAMS["whole tiles"]), target) == ()


def test_constraints_on_a_parameter_are_kept(folder: Path) -> None:
    """27 of k are done as 24 by calls and 3 in lanes."""
    flat, target = collapse(program(matmul(6, 16, 27))), load_target(folder / "in eights.toml")
    nest = build_nest(flat, Plan((Tile("i", ((0, "i"),), 6, (_leaf(),)),)), target)
    given = [dict(call.params)["n"][0] for call in calls(nest.body) if call.instruction == "gemm6x16"]
    assert [index.const for index in given] == [24]


def test_the_plan_survives_its_json_and_shows_the_call(folder: Path) -> None:
    plan = planned(program(PROGRAMS["edges of i and j"]), load_target(folder / "strided.toml"), 1)
    assert plan_from_json(plan.to_json()) == plan
    assert "do 0 by gemm6x16 with i = i, j = j, k = k lanes j x 8" in str(plan)


def test_an_object_file_names_what_it_must_be_linked_with(folder: Path) -> None:
    source, target = program(PROGRAMS["whole tiles"]), load_target(folder / "strided.toml")
    made = artefacts(source, planned(source, target, 1), target, ("ll", "h"))
    assert b" *   sgemm_6x16, defined in sgemm.o\n" in made["h"]
    assert re.search(rb"declare void @sgemm_6x16\(", made["ll"])


# -- what is refused


def test_a_plan_must_name_an_instruction_that_does_the_statement(folder: Path) -> None:
    flat, target = collapse(program(PROGRAMS["whole tiles"])), load_target(folder / "strided.toml")
    swapped = Leaf(0, "", 1, "gemm6x16", (("i", ("k",)), ("j", ("j",)), ("k", ("i",))))
    for leaf, message in (
        (Leaf(0, "", 1, "nothing", ()), "has no instruction 'nothing'"),
        (Leaf(0, "", 1, "fma.f32x8", (("l", ("j",)),)), "does not work on tiles in main memory"),
        (swapped, "'gemm6x16' does not compute"),
    ):
        with pytest.raises(PlanError, match=message):
            build_nest(flat, Plan((leaf,)), target)


def test_a_layout_the_instruction_cannot_take_is_refused(folder: Path) -> None:
    flat, target = _both(folder, "strided", matmul(12, 32, 8, "ik", "jk"))
    with pytest.raises(PlanError, match=r"cannot take 'b' from b\[.*\]\n.*\n.*hold it"):
        build_nest(flat, Plan((_leaf(),)), target)


def test_a_missing_symbol_is_a_mistake_of_the_target_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    Path("unnamed.toml").write_text(HEAD + STRIDED.replace("sgemm_6x16", "dgemm_6x16"))
    with pytest.raises(TargetError) as caught:
        compile(program(PROGRAMS["whole tiles"]), "unnamed.toml", 1)
    assert str(caught.value) == (
        "'sgemm.o' does not define 'dgemm_6x16'\n"
        "  unnamed.toml: [[instruction]] #1 'gemm6x16'\n"
        '  try: the name as the linker sees it: extern "C" in C++, not static'
    )


def test_a_file_that_is_no_object_file_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    Path("text.o").write_text("int main;")
    Path("text.toml").write_text(HEAD + STRIDED.replace("sgemm.o", "text.o"))
    with pytest.raises(TargetError) as caught:
        compile(program(PROGRAMS["whole tiles"]), "text.toml", 1)
    assert str(caught.value).startswith("'text.o' cannot be loaded\n  text.toml: [[instruction]] #1 'gemm6x16'\n")
    assert str(caught.value).endswith("try: an object file for this machine, compiled with -fPIC, or a shared library")


def test_another_object_is_another_target(folder: Path) -> None:
    """The cache must not hand out kernels that were certified with the microkernel before."""
    before = load_target(folder / "strided.toml").digest
    (folder / "edited").mkdir()
    (folder / "edited/strided.toml").write_bytes((folder / "strided.toml").read_bytes())
    write_object(folder / "edited/sgemm.o", strided("sgemm_6x16", 6, 16))
    assert load_target(folder / "edited/strided.toml").digest != before


def test_a_microkernel_that_does_something_else_is_found_out(folder: Path) -> None:
    (folder / "wrong.toml").write_text(HEAD + STRIDED.replace("a[i, k] * b", "2.0 * a[i, k] * b"))
    for name, fault in (("strided", ""), ("panels", ""), ("wrong", "c: element 1 is")):
        target = load_target(folder / f"{name}.toml")
        expert = target.tile_instructions[0]
        found = _checked(expert, target)
        assert found.fault.startswith(fault) and bool(found.fault) == bool(fault)


def test_a_shared_library_is_called_too(tmp_path: Path) -> None:
    maps = Path("/proc/self/maps")
    paths = {line.split()[-1] for line in maps.read_text().splitlines()} if maps.exists() else set()
    library = next((path for path in sorted(paths) if re.search(r"/libm\.so\.6$|/libm-[\d.]+\.so$", path)), None)
    if library is None:
        pytest.skip("no mathematics library is loaded as a file")
    (tmp_path / "libm.so").symlink_to(library)
    table = 'name = "bend"\ncomputes = "y[] = abs(a[])"\noperands = { y = "f32 @ registers", a = "f32 @ registers" }\n'
    (tmp_path / "bend.toml").write_text(f'{HEAD}{table}call = "fabsf"\nobject = "libm.so"\n')
    target = load_target(tmp_path / "bend.toml")
    bend = target.instruction("bend")
    found = _checked(bend, target)
    assert (found.fault, found.skipped) == ("", "")


def _checked(instruction: Instruction, target: Target) -> Checked:
    return check_instruction(instruction, target, lambda code: load_object(code, symbols_beside((instruction,))))


def _uses(plan: Plan) -> bool:
    return any(leaf.instruction for leaf in plan.leaves())


def _leaf() -> Leaf:
    return Leaf(0, "j", 8, "gemm6x16", (("i", ("i",)), ("j", ("j",)), ("k", ("k",))))


def _both(folder: Path, kind: str, text: str) -> tuple[Program, Target]:
    return collapse(program(text)), load_target(folder / f"{kind}.toml")
