"""Programs on simulated machines: called like any kernel, exact, with cycles, a certificate and what the host does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

import dovetail
from dovetail.base.errors import CallError, CertificateError, MappingError, SimulationError
from dovetail.ir.evaluate import evaluate
from dovetail.ir.fill import fill
from dovetail.ir.plan import Plan
from dovetail.sim.timed import simulate_time
from dovetail.simulated import certify, specialise
from dovetail.simulated.kernel import SimulatedKernel
from dovetail.simulated.lowered import lowered
from dovetail.targets.load import load_target

Array = npt.NDArray[np.generic]
PRODUCT = "in a: i8[40,50]  in b: i8[50,70]  out c: i32[40,70]\nfor i<40, j<70, k<50: c[i,j] += a[i,k] * b[k,j]"
SIZED = """\
size m in 1..99
in a: i8[m,20]  const b: i8[20,32]  out c: i32[m,32]
for i<m, j<32, k<20: c[i,j] += a[i,k] * b[k,j]
"""
PADDED = """\
in x: i8[1,16,9,9]  in w: i8[20,16,3,3]  out y: i32[1,20,9,9]
for n<1, k<20, p<9, q<9, c<16, r<3, s<3 where p+r>=1, p+r<=9, q+s>=1, q+s<=9:
    y[n,k,p,q] += x[n,c,p+r-1,q+s-1] * w[k,c,r,s]
"""
SOFTMAX = """\
in x: f32[6,50]  out y: f32[6,50]  temp m: f32[6]  temp e: f32[6,50]  temp s: f32[6]
for i<6, j<50: m[i] max= x[i,j]
for i<6, j<50: e[i,j] = exp(x[i,j] - m[i])
for i<6, j<50: s[i] += e[i,j]
for i<6, j<50: y[i,j] = e[i,j] / s[i]
"""


def compiled(text: str, target: str = "systolic16", constants: Mapping[str, object] | None = None) -> SimulatedKernel:
    kernel = dovetail.compile(dovetail.program(text), target, constants=constants)
    assert isinstance(kernel, SimulatedKernel)
    return kernel


def agrees(kernel: SimulatedKernel, sizes: Mapping[str, int] | None = None) -> bool:
    program = kernel.program
    arrays = fill(program, 7, sizes)
    found = kernel(*(arrays[t.name] for t in program.inputs if t.name not in kernel.constants), sizes=sizes)
    assert isinstance(found, np.ndarray)
    return bool(np.array_equal(found, evaluate(program, arrays, sizes)[program.outputs[0].name]))


@pytest.mark.parametrize("text", [PRODUCT, PADDED, SOFTMAX], ids=["product", "padded", "softmax"])
def test_a_kernel_computes_what_the_program_says(text: str) -> None:
    assert agrees(compiled(text))


def test_a_kernel_says_how_many_cycles_it_takes_and_what_is_busy() -> None:
    kernel = compiled(PRODUCT)
    assert kernel.cycles == kernel.timing.cycles == simulate_time(kernel.last.nest, kernel.last.machine).cycles
    assert kernel.predicted_cycles == pytest.approx(kernel.cycles, rel=0.1)
    assert kernel.utilisation == kernel.timing.unit("array").utilisation > 0.1
    assert kernel.on_host == ()
    assert kernel.target == "systolic16"


def test_every_kernel_has_a_certificate() -> None:
    certificate = compiled(PRODUCT).certificate
    assert certificate.holds
    assert [check.method for check in certificate.checks] == [
        "isl",
        "equal indices",
        "timed run",
        "functional simulation",
    ]
    assert "whole program" in certificate.checks[-1].detail


def test_a_large_program_is_certified_on_a_small_instance() -> None:
    text = PRODUCT.replace("40", "2000").replace("50", "2100").replace("70", "2200")
    detail = compiled(text).certificate.checks[-1].detail
    assert "small instance" in detail, detail


def test_what_no_instruction_fits_runs_on_the_host_and_is_listed_with_the_reason() -> None:
    kernel = compiled(SOFTMAX)
    assert [h.statement for h in kernel.on_host] == [0, 1, 2, 3]
    assert kernel.on_host[1].text == "for i<6, j<50: e[i, j] = exp(x[i, j] - m[i])"
    assert all(h.reason for h in kernel.on_host)
    assert kernel.utilisation == kernel.timing.unit("host").utilisation


def test_the_reason_is_what_the_nearest_instruction_lacks() -> None:
    """Instructions of a family count as one, copies last."""
    reasons = [h.reason for h in compiled(SOFTMAX, "npu-mv").on_host]
    assert reasons[1].startswith("MVMul64: multiplies two tensors")
    assert reasons[2].startswith("VVAdd32.f32 fits, but ")


def test_a_machine_without_a_host_refuses_what_does_not_fit() -> None:
    machine = load_target("systolic16")
    alone = replace(machine, units=machine.units[1:], digest="alone")
    with pytest.raises(MappingError, match='runs = "generic"'):
        dovetail.compile(dovetail.program(SOFTMAX), alone)


def test_the_explanation_has_the_plan_the_cycles_and_the_certificate() -> None:
    text = compiled(PRODUCT).explain()
    for words in (
        "for systolic16, simulated",
        "do 0 by matmul16",
        "cycles simulated",
        "predicted",
        "certificate\n  ok ",
    ):
        assert words in text


def test_run_time_sizes_are_planned_for_when_they_come() -> None:
    kernel = compiled(SIZED)
    with pytest.raises(CallError, match="it depends on m"):
        _ = kernel.plan
    assert agrees(kernel, {"m": 3})
    few = kernel.cycles
    assert agrees(kernel, {"m": 99})
    assert kernel.cycles > few
    assert kernel.at({"m": 3}) is kernel.at({"m": 3})
    assert kernel.cycles == few
    with pytest.raises(CallError, match=r"outside 1\.\.99"):
        kernel.at({"m": 100})


def test_constants_are_bound_and_results_go_where_the_caller_wants_them() -> None:
    program = dovetail.program(SIZED)
    arrays = fill(program, 7, {"m": 5})
    kernel = compiled(SIZED, constants={"b": arrays["b"]})
    out = np.zeros((5, 32), np.int32)
    assert kernel(arrays["a"], out=out) is out
    np.testing.assert_array_equal(out, evaluate(program, arrays)["c"])
    with pytest.raises(CallError, match=r"takes 1 arguments \(a\), got 2"):
        kernel(arrays["a"], arrays["b"])
    with pytest.raises(CallError, match="not a constant"):
        kernel.bind({"a": arrays["a"]})


def test_arguments_are_checked() -> None:
    kernel = compiled(PRODUCT)
    a, b = np.zeros((40, 50), np.int8), np.zeros((50, 70), np.int8)
    with pytest.raises(CallError, match="wrong shape"):
        kernel(a, a)
    with pytest.raises(CallError, match="wrong dtype"):
        kernel(a, b.astype(np.int16))
    with pytest.raises(CallError, match="out has 2 arrays"):
        kernel(a, b, out=[a, b])


def test_inputs_stay_as_they_are() -> None:
    text = "in a: i8[8,16]  inout c: i32[8]\nfor i<8, k<16: c[i] += a[i,k]"
    a, c = np.ones((8, 16), np.int8), np.full(8, 5, np.int32)
    np.testing.assert_array_equal(compiled(text)(a, c), np.full(8, 21))
    assert (c == 5).all()


def test_the_plan_that_is_given_is_used() -> None:
    plan = compiled(PRODUCT).plan
    host = Plan((replace(next(iter(plan.leaves())), instruction="", bound=(), operands=()),))
    kernel = dovetail.compile(dovetail.program(PRODUCT), "systolic16", plan=host)
    assert isinstance(kernel, SimulatedKernel)
    assert kernel.plan == host
    assert agrees(kernel)
    assert kernel.on_host[0].reason == "matmul16 fits, but the plan leaves it to the host"


def test_nothing_is_returned_when_program_and_nest_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    """The certificate looks at results, not at how they were planned: a reference that is off by one shows."""

    def off(*arguments: object, **options: object) -> dict[str, Array]:
        return {name: array + 1 for name, array in evaluate(*arguments, **options).items()}  # type: ignore[arg-type]

    monkeypatch.setattr(certify, "evaluate", off)
    with pytest.raises(CertificateError, match="program and nest agree was not confirmed"):
        compiled(PRODUCT)


def test_a_nest_that_breaks_a_rule_of_the_machine_is_not_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    small = replace(load_target("systolic16"), digest="small")
    memories = tuple(replace(m, bytes=64) if m.name == "scratchpad" else m for m in small.memories)
    plan = compiled(PRODUCT).plan
    with pytest.raises(SimulationError, match="memory 'scratchpad' is full"):
        dovetail.compile(dovetail.program(PRODUCT), replace(small, memories=memories), plan=plan)


def test_every_element_is_compared_by_verify() -> None:
    assert dovetail.verify(dovetail.program(PRODUCT), "systolic16").is_exact


def test_lowering_is_what_the_kernel_runs() -> None:
    kernel = compiled(PRODUCT)
    _, nest = lowered(kernel.program, kernel.plan, load_target("systolic16"))
    assert nest == kernel.last.nest
    assert specialise.default_plan(kernel.program, load_target("systolic16")) == kernel.plan


AHEAD = """
const w: f64[4,32]  const g: f64[2,4]  in x: f64[2,128]  temp two: f64[1]  temp u: f64[2,32]  out y: f64[32,128]
two[0] = 2
for a<2, k<32, r<4: u[a,k] += g[a,r] * w[r,k]
for k<32, n<128, a<2: y[k,n] += u[a,k] * x[a,n]
"""


def test_what_constants_decide_is_computed_when_they_are_bound_and_takes_no_cycles() -> None:
    program = dovetail.program(AHEAD)
    arrays = fill(program, 1)
    kernel = SimulatedKernel(program, load_target("sw26010"))
    assert len(kernel.last.program.statements) == 1
    assert "2 statements done ahead" in kernel.explain()
    wanted = evaluate(program, arrays)["y"]
    np.testing.assert_array_equal(kernel(arrays["w"], arrays["g"], arrays["x"]), wanted)
    assert not kernel.made
    kernel.bind({"w": arrays["w"], "g": arrays["g"]})
    np.testing.assert_array_equal(kernel(arrays["x"]), wanted)
    assert len(kernel.made) == 1
    kernel.bind({"w": 2 * arrays["w"]})
    np.testing.assert_array_equal(kernel(arrays["x"]), 2 * wanted)
