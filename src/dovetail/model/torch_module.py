"""``compile_module``: a PyTorch module, exported and compiled for the shapes it is called with.

    run = compile_module(model, (torch.zeros(1, 3, 224, 224),))
    y = run(x)                    # tensors in, tensors out, as the module has them
    print(run.report)

It computes what the module computes without gradients. Parameters are taken as they are at each call: where they have
been written or exchanged since, they are bound again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch._dynamo.exc import UserError
from torch.export import ExportedProgram, export
from torch.export.graph_signature import InputKind, InputSpec, OutputKind, OutputSpec
from torch.utils._pytree import TreeSpec, tree_flatten, tree_unflatten

from dovetail.base.errors import CallError, DovetailError
from dovetail.frontends.torch.decompose import traced_with
from dovetail.model.general import Shapes
from dovetail.model.opened import own_patterns
from dovetail.model.torch_function import MOST_SHAPES, TorchFunction
from dovetail.model.torch_run import Settings, TorchReport

if TYPE_CHECKING:
    from dovetail.rewrite.patterns.file import Patterns

Key = tuple[object, ...]
_STATE = (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR)


def compile_module(
    module: torch.nn.Module,
    example_inputs: Sequence[object],
    example_keywords: Mapping[str, object] | None = None,
    *,
    strict: bool = False,
    target: str = "host",
    threads: int | None = None,
    cache: bool = True,
    jobs: int | None = None,
    patterns: Patterns | None = None,
    dynamic: bool | None = None,
) -> CompiledModule:
    """``module`` compiled for inputs like these; other shapes are compiled when they are first seen.

    The first shape gets code of its own; from the second on code takes sizes at run time where it can. With
    ``dynamic=False`` each shape has its own; with ``True`` a batch, the first extent of every input, may change from
    the start. Raises an UnsupportedError, with ``strict``, where PyTorch would have to run an operator.
    """
    compiled = CompiledModule(module, Settings(strict, target, threads, cache, jobs, own_patterns(patterns), dynamic))
    compiled.prepare(tuple(example_inputs), dict(example_keywords or {}))
    return compiled


class CompiledModule:
    """Call it as the module is called. ``report`` is of the code made last."""

    def __init__(self, module: torch.nn.Module, settings: Settings) -> None:
        self.module, self._settings = module, settings
        self.report = TorchReport(())
        self._shapes = Shapes(settings.dynamic)
        self._variants: OrderedDict[Key, _Variant] = OrderedDict()

    def __call__(self, *args: object, **kwargs: object) -> object:
        leaves, spec = tree_flatten((args, kwargs))
        if torch.is_grad_enabled() and any(isinstance(x, torch.Tensor) and x.requires_grad for x in leaves):
            raise CallError("an input needs gradients", hint="with torch.no_grad(): ..., or torch.compile")
        variant = self._variant(args, kwargs, leaves, spec)
        with torch.no_grad():
            return variant(leaves)

    def prepare(self, args: tuple[object, ...], kwargs: dict[str, object]) -> None:
        """Compiles for inputs like these."""
        leaves, spec = tree_flatten((args, kwargs))
        if self._settings.dynamic:
            self._show(leaves, spec)
        self._variant(args, kwargs, leaves, spec).prepare(leaves)

    def _variant(
        self, args: tuple[object, ...], kwargs: dict[str, object], leaves: Sequence[object], spec: TreeSpec
    ) -> _Variant:
        key = (self.module.training, spec, *map(_shape_of, leaves))
        found = self._variants.get(key)
        if found is None:
            found = self._exported(args, kwargs)
            self._variants[key] = found
            if len(self._variants) > MOST_SHAPES:
                self._variants.popitem(last=False)
        self._variants.move_to_end(key)
        return found

    def _exported(self, args: tuple[object, ...], kwargs: dict[str, object]) -> _Variant:
        return _exported(self.module, args, kwargs, self._settings, self._record, self._shapes)

    def _show(self, leaves: Sequence[object], spec: TreeSpec) -> None:
        """The module with a larger batch, where it takes one."""
        others = [_enlarged(x) if isinstance(x, torch.Tensor) else x for x in leaves]
        args, kwargs = tree_unflatten(others, spec)
        with suppress(RuntimeError, TypeError, ValueError, UserError, DovetailError):
            self._exported(args, kwargs).show(others)

    def _record(self, report: TorchReport) -> None:
        self.report = report


@dataclass(frozen=True, slots=True, eq=False)
class _Variant:
    """A module for one set of shapes. Inputs of the graph are state of the module or what the caller gives."""

    function: TorchFunction
    state: tuple[Callable[[], torch.Tensor] | None, ...]
    """For each input, where it is read; None where it is the next that the caller gives."""
    writes: tuple[int | None, ...]
    """For each output, which input takes its value; None where it goes to the caller."""
    spec: TreeSpec

    def __call__(self, leaves: Sequence[object]) -> object:
        inputs = self._inputs(leaves)
        outputs = self.function(*inputs)
        for place, value in zip(self.writes, outputs, strict=True):
            if place is not None:
                written = inputs[place]
                assert isinstance(written, torch.Tensor)
                written.copy_(value)
        kept = [value for place, value in zip(self.writes, outputs, strict=True) if place is None]
        return tree_unflatten(kept, self.spec)

    def prepare(self, leaves: Sequence[object]) -> None:
        self.function.prepare(self._inputs(leaves))

    def show(self, leaves: Sequence[object]) -> None:
        self.function.show(self._inputs(leaves))

    def _inputs(self, leaves: Sequence[object]) -> list[object]:
        given = iter(leaves)
        return [next(given) if read is None else read() for read in self.state]


def _exported(
    module: torch.nn.Module,
    args: tuple[object, ...],
    kwargs: dict[str, object],
    settings: Settings,
    record: Callable[[TorchReport], None],
    shapes: Shapes,
) -> _Variant:
    with torch.no_grad():
        program: ExportedProgram = traced_with(export(module, args, kwargs).run_decompositions, whole=True)
    inputs = program.graph_signature.input_specs
    outputs = program.graph_signature.output_specs
    names = {spec.arg.name: place for place, spec in enumerate(inputs)}
    state = tuple(_reader(module, program, spec) for spec in inputs)
    owners = {spec.target: names[spec.arg.name] for spec in inputs if spec.kind in _STATE}
    writes = tuple(_written(spec, owners, names) for spec in outputs)
    fixed = [place for place, read in enumerate(state) if read is not None and place not in writes]
    function = TorchFunction(program.graph_module, fixed, settings, record, shapes)
    return _Variant(function, state, writes, program.call_spec.out_spec)


def _enlarged(tensor: torch.Tensor) -> torch.Tensor:
    """Two more of what the first extent counts."""
    if not tensor.ndim or not tensor.shape[0]:
        return tensor
    return torch.cat([tensor, *[tensor[:1]] * 2])


def _reader(module: torch.nn.Module, program: ExportedProgram, spec: InputSpec) -> Callable[[], torch.Tensor] | None:
    """How an input that is state of the module is read at each call."""
    if spec.kind not in _STATE:
        return None
    if spec.kind is InputKind.CONSTANT_TENSOR:
        return partial(program.constants.__getitem__, spec.target)
    path, _, name = spec.target.rpartition(".")
    return partial(getattr, module.get_submodule(path), name)


def _written(spec: OutputSpec, owners: Mapping[str, int], names: Mapping[str, int]) -> int | None:
    """Which input an output is to be written into."""
    if spec.kind in (OutputKind.BUFFER_MUTATION, OutputKind.PARAMETER_MUTATION):
        return owners[spec.target]
    return names[spec.target] if spec.kind is OutputKind.USER_INPUT_MUTATION else None


def _shape_of(leaf: object) -> object:
    """What code depends on: a tensor's shape, anything else itself."""
    return (tuple(leaf.shape), leaf.dtype, leaf.stride()) if isinstance(leaf, torch.Tensor) else leaf
