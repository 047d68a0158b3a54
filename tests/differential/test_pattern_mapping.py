"""Models compiled with patterns: mapped as the patterns say, and right against NumPy."""

from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper

import dovetail
from dovetail import op, pattern
from dovetail.base.errors import ModelError, PatternError
from dovetail.model.torch_backend import reports
from dovetail.rewrite.patterns.pattern import Pattern
from tests.microkernels import strided, write_object
from tests.unit.cli.command import dovetail as command

Array = npt.NDArray[np.float32]
RNG = np.random.default_rng(0)
X = RNG.integers(-3, 4, (24, 32)).astype(np.float32)


def weights(*shape: int) -> Array:
    return RNG.integers(-2, 3, shape).astype(np.float32)


def model(path: Path, nodes: list[tuple[str, str, str]], outputs: list[str], **constants: Array) -> Path:
    """``("Mul", "a b", "c")`` for each node; x is the input."""
    made = [helper.make_node(kind, inputs.split(), results.split()) for kind, inputs, results in nodes]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, list(X.shape))
    results = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
    data = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph(made, "g", [x], results, data)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10), path)
    return path


def run(path: Path, *patterns: Pattern, target: str | Path = "host") -> tuple[list[Array], list[str], str]:
    """Outputs, operators that were compiled, and what the report says of patterns."""
    found = dovetail.load(path, target, threads=2, cache=False, patterns=patterns)
    results = [np.asarray(one) for one in found(X)]
    report = found.compiled({"x": X}).report
    notes = [note.what for note in report.notes if note.pass_ == "patterns"]
    return results, [name for row in report.rows for name in row.operators], "; ".join(notes)


def sigmoid(a: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-a)), np.float32)


@pattern(replacement=lambda x: op.silu(x))
def swish(x):  # type: ignore[no-untyped-def]
    """Swish, as exporters write it."""
    return x * op.sigmoid(x)


def test_a_product_with_a_sigmoid_becomes_one_operator(tmp_path: Path) -> None:
    w = weights(32, 16)
    path = model(tmp_path / "m.onnx", [("MatMul", "x w", "a"), ("Sigmoid", "a", "s"), ("Mul", "s a", "y")], ["y"], w=w)
    (y,), operators, notes = run(path, swish)
    a = X @ w
    np.testing.assert_allclose(y, a * sigmoid(a), rtol=1e-5, atol=1e-5)
    assert (operators, notes) == (["matmul", "silu"], "swish, 1 time")


def test_a_layer_with_a_spelled_out_gelu_becomes_a_dense_layer(tmp_path: Path) -> None:
    @pattern(
        replacement=lambda x, w, b: op.gelu(op.dense(x, op.transpose(w, perm=(1, 0)), b)),
        when=("constant(?w)",),
        types=("b: f32[?n]",),
    )
    def layer(x, w, b):  # type: ignore[no-untyped-def]
        h = op.matmul(x, w) + b
        return (h * (op.erf(h / 1.4142135) + 1.0)) * 0.5

    w, b = weights(32, 48), weights(48)
    nodes = [
        ("MatMul", "x w", "p"), ("Add", "b p", "h"), ("Div", "h r", "d"), ("Erf", "d", "e"), ("Add", "e one", "f"),
        ("Mul", "h f", "g"), ("Mul", "g half", "y"),
    ]  # fmt: skip
    one, half, root = (np.array(v, np.float32) for v in (1, 0.5, 2**0.5))
    path = model(tmp_path / "m.onnx", nodes, ["y"], w=w, b=b, one=one, half=half, r=root)
    (y,), operators, notes = run(path, layer)
    h = torch.from_numpy(X @ w + b)
    np.testing.assert_allclose(y, torch.nn.functional.gelu(h).numpy(), rtol=1e-5, atol=1e-5)
    assert (operators, notes) == (["dense", "gelu"], "layer, 1 time")


def test_a_chain_of_residual_sums_becomes_one_program(tmp_path: Path) -> None:
    sums = Pattern(
        "sums",
        "repeat(?n >= 3, ?h = ?x, add(?h, each(?b)))",
        "reduce_sum(concat(unsqueeze(?x){axes = (0)}, each(unsqueeze(?b){axes = (0)})){axis = 0})"
        "{axes = (0), keepdims = 0}",
        types=("x: ?t", "b: ?t"),
    )
    kinds = ("Relu", "Neg", "Abs", "Relu")
    nodes, last = [], "x"
    for number, kind in enumerate(kinds):
        nodes += [(kind, last, f"b{number}"), ("Add", f"{last} b{number}", f"h{number}")]
        last = f"h{number}"
    (plain,), _, notes = run(model(tmp_path / "m.onnx", nodes, [last]), sums)
    assert notes == "sums was not found"  # every step reads the sum so far: it is no chain to be taken apart
    apart = [(kind, "x", f"b{number}") for number, kind in enumerate(kinds)]
    chain = [("Add", f"{'x' if n == 0 else f'h{n - 1}'} b{n}", f"h{n}") for n in range(4)]
    (y,), operators, notes = run(model(tmp_path / "n.onnx", [*apart, *chain], ["h3"]), sums)
    np.testing.assert_array_equal(y, X + np.maximum(X, 0) - X + np.abs(X) + np.maximum(X, 0))
    assert notes == "sums, 1 time"
    assert "reduce_sum" in operators
    assert plain.shape == X.shape


def test_products_of_one_value_are_joined_with_their_weights_laid_side_by_side(tmp_path: Path) -> None:
    qkv = Pattern(
        "qkv",
        "matmul(?x, ?q), matmul(?x, ?k), matmul(?x, ?v)",
        "a, b, c = split(matmul(?x, concat(?q, ?k, ?v){axis = 1})){sizes = (?m, ?n, ?o), axis = 1}  a, b, c",
        types=("q: ?t[?i, ?m]", "k: ?t[?i, ?n]", "v: ?t[?i, ?o]"),
        when=("constant(?q)", "constant(?k)", "constant(?v)"),
    )
    q, k, v = weights(32, 16), weights(32, 16), weights(32, 8)
    nodes = [("MatMul", f"x {name}", f"y{name}") for name in "qkv"] + [("Relu", "yv", "z")]
    found, operators, notes = run(model(tmp_path / "m.onnx", nodes, ["yq", "yk", "z"], q=q, k=k, v=v), qkv)
    for y, wanted in zip(found, (X @ q, X @ k, np.maximum(X @ v, 0)), strict=True):
        np.testing.assert_array_equal(y, wanted)
    assert operators.count("matmul") == 1
    assert "concat" not in operators  # the weights are joined ahead of time
    assert notes == "qkv, 1 time"


def test_a_program_of_the_users_own_is_compiled_with_its_neighbours(tmp_path: Path) -> None:
    text = "in x: f32[?n, ?k]  out y: f32[?n, ?k]  for i<?n, j<?k: y[i, j] = select(x[i, j] < 0, 0, x[i, j] * x[i, j])"
    square = Pattern("square", "mul(relu(?x), relu(?x))", program=text)
    w = weights(32, 16)
    path = model(tmp_path / "m.onnx", [("MatMul", "x w", "a"), ("Relu", "a", "r"), ("Mul", "r r", "y")], ["y"], w=w)
    (y,), operators, _ = run(path, square)
    np.testing.assert_array_equal(y, np.maximum(X @ w, 0) ** 2)
    assert operators[0] == "matmul"
    assert operators[1].startswith("square_")


EXPERT = """\
name = "expert"
inherits = "x86-64-v3"

[[instruction]]
name = "gemm6x16"
computes = "for i<6, j<16, k<n: c[i, j] += a[i, k] * b[k, j]"
operands = { c = "f32 @ memory [ldc, 1]", a = "f32 @ memory [lda, ska]", b = "f32 @ memory [ldb, 1]" }
params = { n = "1..4096" }
cycles = "n / 8"
call = "own_gemm_6x16"
object = "own.o"
"""


def test_a_library_function_of_the_target_file_is_called(tmp_path: Path) -> None:
    write_object(tmp_path / "own.o", strided("own_gemm_6x16", 6, 16))
    (tmp_path / "expert.toml").write_text(EXPERT)
    layer = Pattern(
        "layer",
        "gemm(?x, ?w, ?b){transpose_b = 1}",
        "add(call(?x, transpose(?w){perm = (1, 0)}), ?b)",
        when=("constant(?w)",),
        call="gemm6x16",
    )
    w, b = weights(48, 32), weights(48)
    node = helper.make_node("Gemm", ["x", "w", "b"], ["y"], transB=1)
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, list(X.shape))
    y_info = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    data = [numpy_helper.from_array(w, "w"), numpy_helper.from_array(b, "b")]
    graph = helper.make_graph([node], "g", [x], [y_info], data)
    path = tmp_path / "m.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10), path)
    found = dovetail.load(path, tmp_path / "expert.toml", threads=2, cache=False, patterns=layer)
    (y,) = found(X)
    np.testing.assert_array_equal(np.asarray(y), X @ w.T + b)
    compiled = found.compiled({"x": X})
    assert "own_gemm_6x16 is called" in str(compiled.report)
    assert any(name.startswith("gemm6x16_") for row in compiled.report.rows for name in row.operators)


def test_a_pytorch_module_is_compiled_with_patterns() -> None:
    class Layer(torch.nn.Module):  # type: ignore[misc]  # torch is not looked into
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.relu(x) * torch.relu(x)

    text = "in x: f32[?n, ?k]  out y: f32[?n, ?k]  for i<?n, j<?k: y[i, j] = max(x[i, j], 0) * max(x[i, j], 0)"
    square = Pattern("square", "mul(relu(?x), relu(?x))", program=text)
    given = torch.from_numpy(X)
    compiled = dovetail.compile(Layer(), (given,), cache=False, patterns=square)
    np.testing.assert_array_equal(compiled(given).numpy(), np.maximum(X, 0) ** 2)  # type: ignore[attr-defined]
    assert "square_" in str(compiled.report)
    torch._dynamo.reset()
    fast = torch.compile(Layer(), backend="dovetail", options={"patterns": [square], "cache": False})
    with torch.no_grad():
        np.testing.assert_array_equal(fast(given).numpy(), np.maximum(X, 0) ** 2)
    assert "square_" in str(reports()[-1])


def test_a_wrong_mapping_stops_the_model_from_being_compiled(tmp_path: Path) -> None:
    path = model(tmp_path / "m.onnx", [("Sigmoid", "x", "s"), ("Mul", "s x", "y")], ["y"])
    wrong = Pattern("wrong", "mul(?x, sigmoid(?x))", "mul(?x, hard_sigmoid(?x))")
    with pytest.raises(PatternError, match="maps to another computation"):
        run(path, wrong)


def test_a_compiled_file_takes_no_patterns(tmp_path: Path) -> None:
    path = model(tmp_path / "m.onnx", [("Relu", "x", "y")], ["y"])
    dovetail.load(path, cache=False).compiled({"x": X}).save(tmp_path / "m.dovetail")
    with pytest.raises(ModelError, match="compiled already"):
        dovetail.load(tmp_path / "m.dovetail", patterns=swish)


def test_explain_says_what_matched_and_what_parted(tmp_path: Path) -> None:
    nodes = [("Sigmoid", "x", "s"), ("Mul", "s x", "m"), ("Tanh", "m", "t"), ("Mul", "m t", "y")]
    path = model(tmp_path / "m.onnx", nodes, ["y"])
    mine = tmp_path / "mine.toml"
    mine.write_text('[[pattern]]\nname = "swish"\nbefore = "mul(?x, sigmoid(?x))"\nafter = "silu(?x)"\n')
    shown = command("explain", str(path), "--patterns", str(mine))
    assert shown.code == 0
    assert "swish at m" in shown.out
    assert "swish: 1 of 2 operators up from y; t parted: sigmoid is wanted, it is tanh" in shown.out
    data = command("explain", str(path), "--patterns", str(mine), "--json").json
    assert data["patterns"] == ["swish"]
    ran = command("run", str(path), "--patterns", str(mine))
    assert ran.code == 0
    assert command("explain", str(path)).code == 0
