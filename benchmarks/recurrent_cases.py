"""The models of ``benchmarks.recurrent``: LSTM cells written by hand and unrolled, and layers of DeepBench as one node.

A case is its name: ``lstm-cells-t100-b1-h256`` is a loop over 100 steps in PyTorch that the ONNX exporter has
flattened, ``gru-t50-b4-h2048`` one node GRU. Inputs are as wide as the state. Weights come from a fixed seed. The files
are those of ``benchmarks.zoo``: NAME.onnx and NAME.npz with inputs and the outputs of a float64 run.
"""

import json
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.shapes import FLOAT_BYTES, ShapeFileError
from benchmarks.zoo import OPSET, SEED, Array, Model

if TYPE_CHECKING:
    import torch

CELLS, LSTM, GRU = "lstm-cells", "lstm", "gru"
GATES = {CELLS: 4, LSTM: 4, GRU: 3}
ONNX_ORDER = {LSTM: (0, 3, 1, 2), GRU: (1, 0, 2)}
"""Where each gate of ONNX (i, o, f, c; z, r, h) lies among PyTorch's (i, f, g, o; r, z, n)."""
UNROLLED = ((100, 1, 128), (100, 1, 256), (25, 1, 512), (50, 4, 256), (25, 16, 512), (25, 1, 1024))
NAME = re.compile(r"(lstm-cells|lstm|gru)-t(\d+)-b(\d+)-h(\d+)")


@dataclass(frozen=True, slots=True)
class Case:
    """``steps`` of ``kind`` over ``batch`` sequences, ``hidden`` elements in and as many in the state."""

    kind: str
    steps: int
    batch: int
    hidden: int

    @property
    def name(self) -> str:
        return f"{self.kind}-t{self.steps}-b{self.batch}-h{self.hidden}"

    @property
    def step_flops(self) -> int:
        """Of the product with the state, in one step."""
        return 2 * self.batch * GATES[self.kind] * self.hidden**2

    @property
    def flops(self) -> int:
        return 2 * self.steps * self.step_flops

    @property
    def weight_bytes(self) -> int:
        """Of the weights of the state, which every step reads."""
        return FLOAT_BYTES * GATES[self.kind] * self.hidden**2

    def floor(self, flops_per_second: float, bytes_per_second: float) -> float:
        """The least seconds of a call: those of its multiply-adds, or of its weights, read in every step from where
        they fit and once for the products of all inputs."""
        read = self.weight_bytes / bytes_per_second
        step = max(self.step_flops / flops_per_second, read)
        return self.steps * step + max(self.steps * self.step_flops / flops_per_second, read)


def unrolled_cases() -> list[Case]:
    return [Case(CELLS, *sizes) for sizes in UNROLLED]


def deepbench_cases(path: Path, most_steps: int) -> list[Case]:
    """The LSTM and GRU layers of a shape file, at most ``most_steps`` long, each once."""
    try:
        listed = json.loads(path.read_text(encoding="utf-8"))["rnn"]
        cases = [Case(e["type"], min(e["timesteps"], most_steps), e["batch"], e["hidden"]) for e in listed]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ShapeFileError(f"{path}: no list 'rnn' of type, timesteps, batch and hidden ({error})") from error
    return list(dict.fromkeys(case for case in cases if case.kind in (LSTM, GRU)))


def is_case(name: str) -> bool:
    return NAME.fullmatch(name) is not None


def case_of(name: str) -> Case:
    """The inverse of ``Case.name``."""
    found = NAME.fullmatch(name)
    assert found is not None, name
    return Case(found[1], *map(int, found.groups()[1:]))


def make(folder: Path, case: Case) -> Model:
    """Writes the files of ``case`` into ``folder``."""
    import torch

    x = _input(case)
    module = recurrent_module(case.name)
    path = folder / f"{case.name}.onnx"
    if case.kind == CELLS:
        _export(module, x, path)
    else:
        _write_node(module, case, path)
    with torch.inference_mode():
        made = module.double()(torch.from_numpy(x).double())
    np.savez(path.with_suffix(".npz"), allow_pickle=False, x=x, **{f"out{n}": t.numpy() for n, t in enumerate(made)})
    return Model(case.name, str(folder), case.flops, 2 * case.weight_bytes)


def remove(model: Model) -> None:
    for suffix in (".onnx", ".npz"):
        model.onnx.with_suffix(suffix).unlink()


def recurrent_module(name: str) -> "torch.nn.Module":
    """In float32, x[t, b, i] in, a tuple of all outputs and the last states out; the same weights in every process."""
    import torch

    from benchmarks.recurrent_modules import HandWritten, Layer

    case = case_of(name)
    torch.manual_seed(SEED)
    torch.set_grad_enabled(False)
    return HandWritten(case.hidden).eval() if case.kind == CELLS else Layer(case.kind, case.hidden).eval()


def _input(case: Case) -> Array:
    shape = (case.steps, case.batch, case.hidden)
    return np.random.default_rng(SEED).uniform(-1, 1, shape).astype(np.float32)


def _export(module: "torch.nn.Module", x: Array, path: Path) -> None:
    """By tracing: a Python loop becomes as many copies of its body as it has steps."""
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        names = ["x"]
        torch.onnx.export(module, (torch.from_numpy(x),), path, input_names=names, opset_version=OPSET, dynamo=False)


def _write_node(module: "torch.nn.Module", case: Case, path: Path) -> None:
    """One node LSTM or GRU with the weights of ``module``."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    weights = {name.split(".")[-1]: tensor.numpy() for name, tensor in module.named_parameters()}
    arrays = {
        name: _reordered(case, weights[theirs]) for name, theirs in (("w", "weight_ih_l0"), ("r", "weight_hh_l0"))
    }
    biases = [_reordered(case, weights[name])[0] for name in ("bias_ih_l0", "bias_hh_l0")]
    arrays["b"] = np.concatenate(biases)[None]
    states = ["h", "c"] if case.kind == LSTM else ["h"]
    settings: Mapping[str, int] = {} if case.kind == LSTM else {"linear_before_reset": 1}
    whole = ["whole", *(f"last_{state}" for state in states)]
    nodes = [helper.make_node(case.kind.upper(), ["x", "w", "r", "b"], whole, hidden_size=case.hidden, **settings)]
    axes = helper.make_node("Constant", [], ["axes"], value_ints=[1])
    nodes += [axes, helper.make_node("Squeeze", ["whole", "axes"], ["y"])]
    shape = [case.steps, case.batch, case.hidden]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)]
    outputs += [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, *shape[1:]]) for name in whole[1:]]
    graph = helper.make_graph(
        nodes,
        case.name,
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        outputs,
        [numpy_helper.from_array(array, name) for name, array in arrays.items()],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8), path)


def _reordered(case: Case, array: Array) -> Array:
    """Gates in ONNX's order, with an axis for directions."""
    parts = np.split(array, GATES[case.kind])
    return np.concatenate([parts[k] for k in ONNX_ORDER[case.kind]])[None]
