"""PyTorch through ``torch.compile``: inductor, with frozen weights where it can. It needs a C++ compiler."""

import shutil

import torch
import torch._inductor.config as inductor

from benchmarks.model_systems import ModelRun
from benchmarks.model_systems.torch_eager import VERSION as VERSION
from benchmarks.model_systems.torch_eager import runs
from benchmarks.systems import Unsupported
from benchmarks.zoo import Model

COMPILERS = ("g++", "clang++", "c++")


def prepare(model: Model, threads: int) -> tuple[ModelRun, ...]:
    """Compiled at the first call, which is not timed."""
    if not any(map(shutil.which, COMPILERS)):
        raise Unsupported("inductor needs a C++ compiler, and there is none")
    torch.set_num_threads(threads)
    inductor.freezing = True
    return runs(model, lambda module: torch.compile(module, dynamic=False))
