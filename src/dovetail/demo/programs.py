"""``make demo``: four programs written here, compiled for this machine, checked in every element, and timed.

NumPy runs the same computation beside them; it is what most people would have used.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from dovetail import __version__
from dovetail.algorithm import Wishes
from dovetail.cli.screen import heading, milliseconds, percent, say, show_table
from dovetail.cli.timing import Latency, latency
from dovetail.compare import Comparison
from dovetail.explain import summary
from dovetail.ir.fill import fill
from dovetail.ir.program import Role
from dovetail.ir.work import work
from dovetail.pipeline import compared, compile_chosen, program
from dovetail.runtime.kernel import Kernel
from dovetail.runtime.peak import Peak, vectors_of
from dovetail.runtime.threads import thread_count
from dovetail.schedule.flats import flat_of, flats
from dovetail.targets.load import load_target
from dovetail.targets.model import Target

Array = npt.NDArray[np.generic]
Floats = npt.NDArray[np.float32]

GEMM = """\
in a: f32[384,512]  in b: f32[512,640]  out c: f32[384,640]
for i<384, j<640, k<512: c[i,j] += a[i,k] * b[k,j]
"""
CONV = """\
in x: f32[1,64,56,56]  const w: f32[64,64,3,3]  const bias: f32[64]
temp t: f32[1,64,56,56]  out y: f32[1,64,56,56]
for n<1, k<64, p<56, q<56, c<64, r<3, s<3
    where p+r >= 1, p+r < 57, q+s >= 1, q+s < 57: t[n,k,p,q] += x[n,c,p+r-1,q+s-1] * w[k,c,r,s]
for n<1, k<64, p<56, q<56: y[n,k,p,q] = max(t[n,k,p,q] + bias[k], 0)
"""
SOFTMAX = """\
in x: f32[256,1000]  temp m: f32[256]  temp e: f32[256,1000]  temp s: f32[256]  out y: f32[256,1000]
for i<256, j<1000: m[i] max= x[i,j]
for i<256, j<1000: e[i,j] = exp(x[i,j] - m[i])
for i<256, j<1000: s[i] += e[i,j]
for i<256, j<1000: y[i,j] = e[i,j] / s[i]
"""
RECURRENCE = """\
size T in 1..1000
in x: f32[T,192]  const w: f32[192,192]  temp a: f32[T,192]  out h: f32[T+1,192]
for i<192: h[0,i] = 0
seq t<T: for i<192, j<192: a[t,i] += w[i,j] * h[t,j]
seq t<T: for i<192: h[t+1,i] = min(max(a[t,i] + x[t,i], 0), 3)
"""


def gemm(arrays: Mapping[str, Floats]) -> Array:
    return np.asarray(arrays["a"] @ arrays["b"])


def conv(arrays: Mapping[str, Floats]) -> Array:
    """As people write it: nine shifted windows, one product each."""
    x = np.pad(arrays["x"][0], ((0, 0), (1, 1), (1, 1)))
    windows = np.stack([x[:, r : r + 56, s : s + 56] for r in range(3) for s in range(3)], axis=1)
    y = arrays["w"].reshape(64, -1) @ windows.reshape(64 * 9, -1) + arrays["bias"][:, None]
    return np.asarray(np.maximum(y, 0).reshape(1, 64, 56, 56))


def softmax(arrays: Mapping[str, Floats]) -> Array:
    x = arrays["x"]
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return np.asarray(e / e.sum(axis=1, keepdims=True))


def recurrence(arrays: Mapping[str, Floats]) -> Array:
    x, w = arrays["x"], arrays["w"]
    h = np.zeros((len(x) + 1, w.shape[0]), np.float32)
    for t in range(len(x)):
        h[t + 1] = np.clip(w @ h[t] + x[t], 0, 3)
    return h


@dataclass(frozen=True, slots=True)
class Example:
    """A program, and the same in NumPy."""

    name: str
    text: str
    in_numpy: Callable[[Mapping[str, Floats]], Array]
    sizes: dict[str, int] = field(default_factory=dict)


EXAMPLES = (
    Example("matrix product", GEMM, gemm),
    Example("3x3 convolution, bias, ReLU", CONV, conv),
    Example("softmax", SOFTMAX, softmax),
    Example("recurrence, T = 100 at run time", RECURRENCE, recurrence, {"T": 100}),
)


def main() -> int:
    """Runs all examples; 0 when every element is right."""
    target = load_target("host")
    threads = thread_count(None, target)
    limits = Peak(vectors_of(target), threads)
    peak = max(limits.measure()[0] for _ in range(3))
    noun = "thread" if threads == 1 else "threads"
    say(f"dovetail {__version__} on {target.reason or target.name}")
    say(f"{threads} {noun}, {peak / 1e9:.0f} GFLOP/s of float32 multiply-adds at best")
    rows, good = [], True
    for example in EXAMPLES:
        found = _run(example, target, threads)
        good = good and found.comparison.agrees
        rows.append(found.cells(peak))
        heading(example.name)
        say(example.text.rstrip(), "dim")
        say()
        say(found.kernel.explain())
        say(found.comparison.verdict, "green" if found.comparison.agrees else "bold red")
    heading("all together")
    columns = ("program", "mapping", "compile", "run", "NumPy", "GFLOP/s", "of peak", "checked")
    show_table(columns, rows, right=("compile", "run", "NumPy", "GFLOP/s", "of peak"))
    return 0 if good else 1


@dataclass(frozen=True, slots=True)
class _Found:
    example: Example
    kernel: Kernel
    words: str
    comparison: Comparison
    ours: Latency
    theirs: Latency
    operations: int

    def cells(self, peak: float) -> tuple[str, ...]:
        rate = self.operations / self.ours.median
        check = self.comparison
        verdict = "WRONG" if not check.agrees else "exact" if check.is_exact else f"within {check.largest_error:.0e}"
        compiled = sum(self.kernel.seconds.values()) - self.kernel.packing_seconds
        times = (milliseconds(t) for t in (compiled, self.ours.median, self.theirs.median))
        return self.example.name, self.words, *times, f"{rate / 1e9:.1f}", percent(rate / peak), verdict


def _run(example: Example, target: Target, threads: int) -> _Found:
    source = program(example.text, example.name)
    arrays = fill(source, 1, example.sizes)
    constants = {t.name: arrays[t.name] for t in source.inputs if t.role is Role.CONST}
    kernel, form = compile_chosen(source, target, threads, Wishes(), constants)
    assert isinstance(kernel, Kernel), "this machine is not simulated"
    given = [arrays[t.name] for t in source.inputs if t.name not in constants]
    result = kernel(*given, sizes=example.sizes or None)
    assert isinstance(result, np.ndarray)
    name = source.outputs[0].name
    comparison = compared(source, kernel, form, arrays, example.sizes, {name: result})
    ours = latency(lambda: kernel(*given, out=result, sizes=example.sizes or None))
    floats = {key: array.astype(np.float32) for key, array in arrays.items()}
    theirs = latency(lambda: example.in_numpy(floats))
    words = summary(flat_of(flats(kernel.main or source), kernel.plan), kernel.plan, target)
    operations = work(source, example.sizes).operations
    return _Found(example, kernel, words, comparison, ours, theirs, operations)


if __name__ == "__main__":
    sys.exit(main())
