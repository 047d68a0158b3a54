"""``torch.compile(op, backend="dovetail")`` on PyTorch's own samples of its operators, against PyTorch itself.

    python -m benchmarks.torch_operators [--only exp,softmax] [--samples 8] [--dtype float32] [--part 0/2]

An operator counts as compiled when every sample ran in one graph, without PyTorch and without a host function, and
something was compiled at all. The last line reads ``operators=… without_fallback=… mismatched=… n=…``.
"""

from __future__ import annotations

import argparse
import copy
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from dovetail.base.errors import DovetailError
from dovetail.model.torch_backend import dovetail, reports

SAMPLES = 8
UNDEFINED = frozenset(
    (
        "empty",
        "empty_like",
        "empty_permuted",
        "empty_strided",
        "new_empty",
        "new_empty_strided",
        "resize_",
        "resize_as_",
    )
)
"""Results whose elements PyTorch does not define: only shapes are compared."""
SETTINGS = {"threads": 1, "jobs": 1, "cache": False}
_FAILURES = (
    RuntimeError,
    TypeError,
    ValueError,
    AssertionError,
    LookupError,
    AttributeError,
    ImportError,
    DovetailError,
)
"""What PyTorch raises where a sample cannot be traced or run, and what we do."""


@dataclass(slots=True)
class Outcome:
    """What became of one operator."""

    name: str
    samples: int = 0
    compiled: int = 0
    """Regions that were compiled, in all samples together."""
    fallbacks: list[str] = field(default_factory=list)
    mismatches: list[str] = field(default_factory=list)

    @property
    def without_fallback(self) -> bool:
        return bool(self.samples and self.compiled) and not self.fallbacks

    def __str__(self) -> str:
        state = "MISMATCH" if self.mismatches else "compiled" if self.without_fallback else "partly"
        why = "; ".join(dict.fromkeys([*self.mismatches, *self.fallbacks]))
        return f"{state:8}  {self.name:44} {self.samples} samples  {why[:200]}"


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    warnings.filterwarnings("ignore")
    torch.set_grad_enabled(False)
    found = []
    dtype = getattr(torch, options.dtype)
    for outcome in outcomes(_chosen(options, dtype), options.samples, dtype):
        found.append(outcome)
        print(outcome, flush=True)
    compiled = sum(outcome.without_fallback for outcome in found)
    wrong = sum(bool(outcome.mismatches) for outcome in found)
    samples = sum(outcome.samples for outcome in found)
    print(f"operators={len(found)} without_fallback={compiled} mismatched={wrong} n={samples}")
    return 1 if wrong else 0


def operators(dtype: torch.dtype = torch.float32) -> Iterator[OpInfo]:
    """Those with samples of ``dtype`` on a processor."""
    return (op for op in op_db if dtype in op.supported_dtypes("cpu"))


def name_of(op: OpInfo) -> str:
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else str(op.name)


def outcomes(ops: Iterable[OpInfo], most: int = SAMPLES, dtype: torch.dtype = torch.float32) -> Iterator[Outcome]:
    """What becomes of each, one after the other."""
    for op in ops:
        outcome = Outcome(name_of(op))
        for sample in _samples(op, most, dtype, outcome):
            _try(op, sample, outcome)
        yield outcome


def _samples(op: OpInfo, most: int, dtype: torch.dtype, outcome: Outcome) -> list[SampleInput]:
    torch.manual_seed(0)
    try:
        return [sample for _, sample in zip(range(most), op.sample_inputs("cpu", dtype), strict=False)]
    except _FAILURES as error:
        outcome.fallbacks.append(f"no samples: {_first_line(error)}")
        return []


def _try(op: OpInfo, sample: SampleInput, outcome: Outcome) -> None:
    """One sample, by PyTorch and by us."""
    try:
        given, other = copy.deepcopy(sample), copy.deepcopy(sample)
        wanted = _seeded(op.op, given)
    except _FAILURES:
        return
    outcome.samples += 1
    torch._dynamo.reset()
    before = len(reports())
    compiled = torch.compile(op.op, backend=dovetail, fullgraph=True, dynamic=False, options=SETTINGS)
    try:
        found = _seeded(compiled, other)
    except _FAILURES as error:
        outcome.fallbacks.append(_first_line(error))
        return
    for report in reports()[before:]:
        outcome.fallbacks += [f"{fallback.operator}: {fallback.reason}" for fallback in report.fallbacks]
        outcome.fallbacks += [f"{name} on the host" for part in report.parts for name in part.on_host]
        outcome.compiled += sum(len(part.rows) for part in report.parts)
    try:
        _compare(outcome.name, found, wanted)
    except AssertionError as error:
        outcome.mismatches.append(" ".join(str(error).split())[:300])


def _seeded(function: Callable[..., object], sample: SampleInput) -> object:
    torch.manual_seed(1)
    return function(sample.input, *sample.args, **sample.kwargs)


def _compare(name: str, found: object, wanted: object) -> None:
    if name.split(".")[0] not in UNDEFINED:
        torch.testing.assert_close(found, wanted, equal_nan=True)
        return
    assert isinstance(found, torch.Tensor) and isinstance(wanted, torch.Tensor)
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype), f"{found.shape}, not {wanted.shape}"


def _first_line(error: BaseException) -> str:
    inner = getattr(error, "inner_exception", error)
    return f"{type(inner).__name__}: {next(iter(str(inner).strip().splitlines()), '')}"


def _chosen(options: argparse.Namespace, dtype: torch.dtype) -> list[OpInfo]:
    only = frozenset(options.only.split(",")) if options.only else None
    part, parts = map(int, options.part.split("/"))
    chosen = [op for op in operators(dtype) if only is None or name_of(op) in only or op.name in only]
    return chosen[part::parts]


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="PyTorch's operators through torch.compile")
    parser.add_argument("--only", default="", help="names, with commas between them")
    parser.add_argument("--samples", type=int, default=SAMPLES)
    parser.add_argument("--dtype", default="float32", help="element type of the samples")
    parser.add_argument("--part", default="0/1", help="every so many of the operators: 0/4, 1/4, ...")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
