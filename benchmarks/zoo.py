"""The models of ``benchmarks.models``: made by ``transformers`` with random weights, exported to ONNX on the spot.

A folder holds three files for each: ``NAME.onnx``, ``NAME.npz`` (inputs, and what a float64 run of the same weights
gives for them, as ``out0``, ``out1``, ...) and ``NAME.json`` (operations and bytes of weights). They are made once and
made again when a recipe changes. Nothing is fetched: weights and inputs come from a fixed seed.
"""

import json
import logging
import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import torch

Array = NDArray[np.generic]
Forward = Callable[..., "tuple[torch.Tensor, ...]"]
RECIPE, SEED, OPSET = 3, 7, 17
CLASSES, IMAGE, BERT_TOKENS, GPT2_TOKENS = 1000, (1, 3, 224, 224), 128, 64


@dataclass(frozen=True, slots=True)
class Recipe:
    """How to make a model with ``transformers``, and inputs for it."""

    make: Callable[[ModuleType, str], "torch.nn.Module"]
    inputs: Callable[[np.random.Generator], dict[str, Array]]


@dataclass(frozen=True, slots=True)
class Model:
    """A model as a problem of the harness: one of RECIPES, and the folder with its files."""

    name: str
    folder: str
    flops: int
    bytes: int

    @property
    def label(self) -> str:
        return self.name

    @property
    def onnx(self) -> Path:
        return Path(self.folder) / f"{self.name}.onnx"

    def inputs(self) -> dict[str, Array]:
        """In the order of the model's inputs."""
        stored = np.load(self.onnx.with_suffix(".npz"))
        return {name: stored[name] for name in stored.files if not name.startswith("out")}

    def reference(self) -> list[NDArray[np.float64]]:
        """The outputs of the float64 run, in order."""
        stored = np.load(self.onnx.with_suffix(".npz"))
        return [stored[f"out{n}"] for n in range(len(stored.files)) if f"out{n}" in stored]


@dataclass(frozen=True, slots=True)
class ModelProblem:
    """A model in the harness."""

    shape: Model
    title: str = "whole models"

    def to_json(self) -> dict[str, object]:
        return {"shape": asdict(self.shape)}


def model_in(folder: Path, name: str) -> Model:
    """The model's files in ``folder``, made where they are not there yet or are of another recipe."""
    facts = folder / f"{name}.json"
    if not facts.exists() or json.loads(facts.read_text())["recipe"] != RECIPE:
        _make(folder, name)
    stored = json.loads(facts.read_text())
    return Model(name, str(folder), stored["flops"], stored["bytes"])


def model_from_json(data: Mapping[str, object]) -> Model:
    """The inverse of ``ModelProblem.to_json``."""
    fields = data["shape"]
    assert isinstance(fields, dict)
    return Model(**fields)


def torch_module(name: str, attention: str = "sdpa") -> "torch.nn.Module":
    """The model in float32, from inputs in order to a tuple of tensors; the same weights in every process."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    import torch
    import transformers

    logging.getLogger("transformers").setLevel(logging.ERROR)

    torch.manual_seed(SEED)
    torch.set_grad_enabled(False)
    module = RECIPES[name].make(transformers, attention)
    module.forward = _plain(module.forward, tuple(RECIPES[name].inputs(np.random.default_rng(SEED))))
    _draw_weights(module)
    return module.eval()


def _make(folder: Path, name: str) -> None:
    """Write the three files, the one that says they are there last."""
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    folder.mkdir(parents=True, exist_ok=True)
    inputs = RECIPES[name].inputs(np.random.default_rng(SEED))
    tensors = tuple(torch.from_numpy(array) for array in inputs.values())
    module = torch_module(name, "eager")
    with warnings.catch_warnings(), FlopCounterMode(display=False) as counter:
        warnings.simplefilter("ignore")
        module(*tensors)
    _export(module, tensors, tuple(inputs), folder / f"{name}.onnx")
    weights = sum(tensor.numel() * tensor.element_size() for tensor in module.parameters())
    reference = module.double()(*(t.double() if t.is_floating_point() else t for t in tensors))
    outputs = {f"out{n}": tensor.numpy() for n, tensor in enumerate(reference)}
    np.savez(folder / f"{name}.npz", allow_pickle=False, **inputs, **outputs)
    facts = {"recipe": RECIPE, "flops": counter.get_total_flops(), "bytes": weights}
    (folder / f"{name}.json").write_text(json.dumps(facts))


def _plain(forward: Forward, names: tuple[str, ...]) -> Forward:
    """Tensors in by position, a tuple of tensors out: what exporters and compilers like best."""

    def plain(*tensors: "torch.Tensor") -> "tuple[torch.Tensor, ...]":
        return forward(**dict(zip(names, tensors, strict=True)), return_dict=False)

    return plain


def _export(module: "torch.nn.Module", tensors: "tuple[torch.Tensor, ...]", names: tuple[str, ...], path: Path) -> None:
    """By the exporter that needs no further package."""
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(module, tensors, path, input_names=names, opset_version=OPSET, dynamo=False)


def _draw_weights(module: "torch.nn.Module") -> None:
    """Weights with which values neither vanish nor grow with depth, and nothing is a zero or a one that a compiler
    could leave out: biases, scales and statistics are those of no particular training, but of some."""
    import torch

    for part in module.modules():
        if isinstance(part, torch.nn.Conv2d):
            torch.nn.init.kaiming_normal_(part.weight, nonlinearity="relu")
        if isinstance(part, torch.nn.BatchNorm2d):
            _draw(part.weight, 0.5, 1.0)
            _draw(part.running_mean, -0.2, 0.2)
            _draw(part.running_var, 0.8, 1.2)
        if isinstance(part, torch.nn.LayerNorm):
            _draw(part.weight, 0.8, 1.2)
        _draw(getattr(part, "bias", None), -0.1, 0.1)


def _draw(tensor: "torch.Tensor | None", low: float, high: float) -> None:
    import torch

    if isinstance(tensor, torch.Tensor):
        torch.nn.init.uniform_(tensor, low, high)


def _image(rng: np.random.Generator) -> dict[str, Array]:
    return {"pixel_values": rng.standard_normal(IMAGE, np.float32)}


def _bert_text(rng: np.random.Generator) -> dict[str, Array]:
    """Two segments, and no padding: the usual case of a text that fills its tokens."""
    tokens = rng.integers(1000, 30000, (1, BERT_TOKENS))
    segments = np.broadcast_to(np.arange(BERT_TOKENS) >= BERT_TOKENS // 2, (1, BERT_TOKENS)).astype(np.int64)
    return {"input_ids": tokens, "attention_mask": np.ones_like(tokens), "token_type_ids": segments}


def _gpt2_text(rng: np.random.Generator) -> dict[str, Array]:
    tokens = rng.integers(0, 50257, (1, GPT2_TOKENS))
    return {"input_ids": tokens, "attention_mask": np.ones_like(tokens)}


RECIPES: Mapping[str, Recipe] = {
    "resnet-50": Recipe(
        lambda t, _: t.ResNetForImageClassification(t.ResNetConfig(num_labels=CLASSES)),
        _image,
    ),
    "vit-base": Recipe(
        lambda t, a: t.ViTForImageClassification(t.ViTConfig(num_labels=CLASSES, attn_implementation=a)),
        _image,
    ),
    "bert-base": Recipe(lambda t, a: t.BertModel(t.BertConfig(attn_implementation=a)), _bert_text),
    "gpt2": Recipe(
        lambda t, a: t.GPT2LMHeadModel(t.GPT2Config(use_cache=False, attn_implementation=a)),
        _gpt2_text,
    ),
    "mobilenet-v2": Recipe(
        lambda t, _: t.MobileNetV2ForImageClassification(t.MobileNetV2Config(num_labels=CLASSES)),
        _image,
    ),
}
