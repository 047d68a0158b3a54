"""PyTorch as it is: the module that was exported, without gradients; convolutional nets also in channels-last."""

from collections.abc import Callable

import torch

from benchmarks.model_systems import ModelRun
from benchmarks.recurrent_cases import is_case, recurrent_module
from benchmarks.zoo import Array, Model, torch_module

VERSION = f"torch {torch.__version__}"
Module = Callable[..., tuple[torch.Tensor, ...]]


def prepare(model: Model, threads: int) -> tuple[ModelRun, ...]:
    """The layouts that PyTorch has for what the model takes."""
    torch.set_num_threads(threads)
    return runs(model, lambda module: module)


def runs(model: Model, made: Callable[[torch.nn.Module], Module]) -> tuple[ModelRun, ...]:
    """``made`` of the module, for each layout."""
    made_of = recurrent_module if is_case(model.name) else torch_module
    module, tensors = made_of(model.name), [torch.from_numpy(array) for array in model.inputs().values()]
    found = [_run("plain", made(module), tensors)]
    if any(isinstance(part, torch.nn.BatchNorm2d) for part in module.modules()):
        last = torch.channels_last
        placed = [tensor.contiguous(memory_format=last) for tensor in tensors]
        found.append(_run("channels last", made(torch_module(model.name).to(memory_format=last)), placed))
    return tuple(found)


def _run(name: str, call: Module, tensors: list[torch.Tensor]) -> ModelRun:
    last: list[torch.Tensor] = []

    def run() -> None:
        with torch.inference_mode():
            last[:] = call(*tensors)

    def results() -> list[Array]:
        return [tensor.contiguous().numpy() for tensor in last]

    return ModelRun(name, run, results)
