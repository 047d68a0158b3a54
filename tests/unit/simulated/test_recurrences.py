"""Recurrences on a simulated machine: what is kept there, in which order, and that results are exact."""

from dataclasses import replace

import numpy as np
import pytest

from dovetail.base.dtypes import dtype
from dovetail.base.errors import PlanError
from dovetail.ir.evaluate import evaluate
from dovetail.ir.fill import fill
from dovetail.ir.graph.graph import Type
from dovetail.ir.index import constant
from dovetail.ir.parse import parse
from dovetail.ir.plan import Digit, Hold, Plan, PlanNode, Tile
from dovetail.ir.program import Program
from dovetail.ir.verify import verify
from dovetail.ops.sequence import gru, lstm, rnn
from dovetail.simulated.fewer_steps import with_fewer_steps
from dovetail.simulated.gates import with_gates_apart, with_rows_apart
from dovetail.simulated.kernel import SimulatedKernel
from dovetail.simulated.lowered import lowered
from dovetail.simulated.specialise import default_plan
from dovetail.targets.load import load_target
from dovetail.targets.model import Target

NPU = load_target("npu-mv")


def gated(steps: int, batch: int = 1, units: int = 64) -> str:
    """A cell of two gates: ``f' = tanh(first) + second * f``."""
    each = f"seq t<{steps}: for b<{batch}, j<{units}"
    return f"""
    in x: f32[{steps},{batch},{2 * units}]  in start: f32[{batch},{units}]  const u: f16[{units},{2 * units}]
    temp y: f32[{steps},{batch},{2 * units}]  temp g: f32[{steps},{batch},{2 * units}]
    temp n: f32[{steps},{batch},{units}]  temp m: f32[{steps},{batch},{units}]
    temp h: f16[{steps + 1},{batch},{units}]  out f: f32[{steps + 1},{batch},{units}]
    for b<{batch}, j<{units}: f[0,b,j] = start[b,j]
    for b<{batch}, j<{units}: h[0,b,j] = start[b,j]
    seq t<{steps}: for b<{batch}, j<{2 * units}, l<{units}: y[t,b,j] += h[t,b,l] * u[l,j]
    seq t<{steps}: for b<{batch}, j<{2 * units}: g[t,b,j] = x[t,b,j] + y[t,b,j]
    {each}: n[t,b,j] = tanh(g[t,b,j])
    {each}: m[t,b,j] = g[t,b,{units}+j] * f[t,b,j]
    {each}: f[t+1,b,j] = n[t,b,j] + m[t,b,j]
    {each}: h[t+1,b,j] = f[t+1,b,j]
    """


def with_room(memory: str, bytes_: int) -> Target:
    """The machine with another size of a memory."""
    memories = tuple(replace(m, bytes=bytes_) if m.name == memory else m for m in NPU.memories)
    return replace(NPU, memories=memories, digest=f"{NPU.digest} {memory} {bytes_}")


def assert_exact(program: Program, kernel: SimulatedKernel) -> None:
    arrays = fill(program, 3)
    found = kernel(*(arrays[t.name] for t in program.inputs))
    (out,) = program.outputs
    assert not isinstance(found, tuple)
    wanted = evaluate(program, arrays)[out.name]
    assert np.count_nonzero(wanted) > wanted.size // 2
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(("steps", "batch", "units"), [(1, 1, 64), (2, 1, 64), (5, 1, 128), (4, 3, 64)])
def test_recurrences_are_exact_with_everything_kept(steps: int, batch: int, units: int) -> None:
    program = parse(gated(steps, batch, units))
    kernel = SimulatedKernel(program, NPU)
    assert "hold h in vector as d0%2, d1, d2" in str(kernel.plan)
    assert "hold u in matrix as d0, d1" in str(kernel.plan)
    assert_exact(program, kernel)


def test_weights_are_copied_once_and_temporaries_never_leave() -> None:
    short, long = (SimulatedKernel(parse(gated(steps)), NPU).timing for steps in (10, 50))
    calls = [{i.name: i.calls for i in timing.instructions} for timing in (short, long)]
    assert calls[0]["toChipMatrix.f16"] == calls[1]["toChipMatrix.f16"] == 1
    assert calls[1]["toDram.f32.f32"] - calls[0]["toDram.f32.f32"] == 40, "one result a step"
    assert calls[1]["toChip.f32.f32"] - calls[0]["toChip.f32.f32"] == 40, "one input a step"


def test_the_time_of_a_step_is_what_more_steps_add() -> None:
    kernel = SimulatedKernel(parse(gated(60, units=128)), NPU)
    (step,) = kernel.step_times
    more = SimulatedKernel(parse(gated(100, units=128)), NPU)
    assert step.steps == 60
    assert step.cycles == pytest.approx((more.cycles - kernel.cycles) / 40, rel=0.01)
    assert step.share("matrix_vector") == pytest.approx(2 * 128 * 128 / 4096 / step.cycles)
    assert "cycles for each of 60 steps" in str(step)


def test_predicted_cycles_of_kept_steps_are_near_the_simulated_ones() -> None:
    kernel = SimulatedKernel(parse(gated(200, 2, 256)), NPU)
    assert kernel.predicted_cycles == pytest.approx(kernel.cycles, rel=0.08)


def test_of_weights_that_do_not_fit_those_that_do_stay() -> None:
    program = parse(gated(4, 1, 256))
    weights = 256 * 512 * 2
    kernel = SimulatedKernel(program, with_room("matrix", weights * 7 // 8))
    held = [hold for hold in kernel.plan.all_holds() if hold.tensor == "u"]
    assert sorted(hold.twice for hold in held) == [False, False, True]
    assert_exact(program, kernel)
    copied = next(i for i in kernel.timing.instructions if i.name == "toChipMatrix.f16")
    whole = SimulatedKernel(program, NPU)
    assert copied.calls > 4
    assert whole.cycles < kernel.cycles < 3 * whole.cycles


def test_without_room_for_the_states_steps_go_through_main_memory() -> None:
    program = parse(gated(3, 4, 128))
    kernel = SimulatedKernel(program, with_room("vector", 8192))
    assert not any(hold.digits for hold in kernel.plan.all_holds())
    assert_exact(program, kernel)


def test_units_that_fill_no_call_are_exact_too() -> None:
    program = parse(gated(3, 2, 40))
    assert_exact(program, SimulatedKernel(program, NPU))


def test_gates_come_apart_and_products_before_what_follows_from_the_last_one() -> None:
    program = with_gates_apart(parse(gated(8)))
    verify(program)
    steps = [s for s in program.statements if s.seq]
    assert [bool(s.reduced) for s in steps] == [True, True, *[False] * (len(steps) - 2)]
    assert [str(s.out) for s in steps[:2]] == ["y_1[t, b, j]", "y_2[t, b, j]"]
    assert "g_1" in str(steps[2]) and "y_1" in str(steps[2])
    arrays = fill(program, 0)
    np.testing.assert_array_equal(evaluate(program, arrays)["f"], evaluate(parse(gated(8)), arrays)["f"])


def test_rows_of_a_product_apart_mean_the_same() -> None:
    program = parse(gated(2))
    number = next(n for n, s in enumerate(program.statements) if s.reduced)
    cut = with_rows_apart(program, number, "j", 48)
    verify(cut)
    assert [s.loops[1].extent.const for s in cut.statements[number : number + 2]] == [48, 80]
    arrays = fill(program, 0)
    np.testing.assert_array_equal(evaluate(cut, arrays)["f"], evaluate(program, arrays)["f"])


def test_a_recurrence_of_fewer_steps_is_the_one_that_says_so() -> None:
    program = parse(gated(40))
    found = with_fewer_steps(program, default_plan(program, NPU), 3)
    assert found is not None
    assert str(found[0]) == str(parse(gated(3)))


@pytest.mark.parametrize(
    "text",
    ["seq t<40: for j<8 where t >= 5: h[t+1,j] = h[t,j] + v[t,j]", "seq t<40: for j<8: h[t+1,j] = v[t,j] + v[20,j]"],
)
def test_steps_that_are_not_alike_stay(text: str) -> None:
    program = parse(f"in v: f32[40,8]  inout h: f32[41,8]  {text}")
    assert with_fewer_steps(program, Plan(()), 3) is None


def test_large_recurrences_are_certified_by_a_few_steps() -> None:
    kernel = SimulatedKernel(parse(gated(3000)), NPU)
    assert any("3 steps" in str(check) for check in kernel.certificate.checks)


def test_a_carried_state_needs_two_places() -> None:
    program = with_gates_apart(parse(gated(6)))
    plan = default_plan(program, NPU)

    def one_place(node: PlanNode) -> PlanNode:
        if not isinstance(node, Tile):
            return node
        digits = (Digit(0, modulus=1), Digit(1), Digit(2))
        holds = tuple(Hold("h", h.memory, digits) if h.tensor == "h" and h.digits else h for h in node.holds)
        return replace(node, holds=holds, body=tuple(one_place(inner) for inner in node.body))

    with pytest.raises(PlanError, match="hold h in vector as d0%1"):
        lowered(program, replace(plan, body=tuple(one_place(node) for node in plan.body)), NPU)


def operator(name: str, gates: int, steps: int, units: int) -> Program:
    """A recurrent layer's own program, in f16."""
    shapes = {"x": (steps, 2, units), "w": (gates * units, units), "r": (gates * units, units)}
    shapes |= {"bias": (2 * gates * units,), "h0": (2, units)} | ({"c0": (2, units)} if name == "lstm" else {})
    roles = {key: "const" if key in ("w", "r", "bias") else "in" for key in shapes}
    lines = [f"{roles[key]} {key}: f16[{', '.join(map(str, shape))}]" for key, shape in shapes.items()]
    x, w, r, bias, h0, *rest = (Type(dtype("f16"), tuple(map(constant, shape))) for shape in shapes.values())
    bodies = {"rnn": lambda: rnn(x, w, r, bias, h0), "lstm": lambda: lstm(x, w, r, bias, h0, rest[0])}
    bodies |= {"gru": lambda: gru(x, w, r, bias, h0, linear_before_reset=1)}
    return parse("\n".join([*lines, bodies[name]()]))


@pytest.mark.parametrize(("name", "gates"), [("rnn", 1), ("gru", 3), ("lstm", 4)])
def test_recurrent_operators_keep_their_weights_and_nothing_runs_on_the_host(name: str, gates: int) -> None:
    program = operator(name, gates, 3, 64)
    kernel = SimulatedKernel(program, NPU)
    assert not kernel.on_host
    assert any(hold.digits for hold in kernel.plan.all_holds())
    arrays = fill(program, 1)
    found = kernel(*(arrays[t.name] for t in program.inputs))
    wanted = evaluate(program, arrays)
    for tensor, got in zip(program.outputs, found, strict=True):
        assert np.abs(got.astype(np.float64) - wanted[tensor.name].astype(np.float64)).max() < 2e-3


def test_a_machine_without_differences_and_sigmoids_does_them_by_sums_and_tanh() -> None:
    program = parse("in a: f32[256]  in b: f32[256]  out y: f32[256]\nfor i<256: y[i] = sigmoid(a[i] - b[i])")
    kernel = SimulatedKernel(program, NPU)
    assert not kernel.on_host
    arrays = fill(program, 2)
    found = kernel(arrays["a"], arrays["b"])
    assert not isinstance(found, tuple)
    assert np.abs(found.astype(np.float64) - evaluate(program, arrays)["y"].astype(np.float64)).max() < 1e-6


def test_weights_are_turned_ahead_for_an_instruction_that_does_more_at_once() -> None:
    text = gated(50, 1, 256).replace("u: f16[256,512]", "u: f16[512,256]").replace("u[l,j]", "u[j,l]")
    program = parse(text)
    kernel = SimulatedKernel(program, NPU)
    assert [str(part.statements[0].out) for part in kernel.last.ahead] == ["u_1[i, j]"]
    assert_exact(program, kernel)
    plain = SimulatedKernel(parse(gated(50, 1, 256)), NPU)
    assert kernel.cycles == pytest.approx(plain.cycles, rel=0.01)


def test_a_sequence_that_is_read_backwards_is_kept_too() -> None:
    program = parse(gated(5).replace("x[t,b,j]", "x[4-t,b,j]"))
    kernel = SimulatedKernel(program, NPU)
    assert "hold x in vector as d0%2, d1, d2" in str(kernel.plan)
    assert_exact(program, kernel)
