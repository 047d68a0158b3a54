"""Valid models that mutations begin with: made here, one for each thing a file can hold, and small cases of ONNX."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

CASE_BYTES = 3000
CASES = 240
DATA = "weights.bin"
F32 = TensorProto.FLOAT


@dataclass(frozen=True, slots=True)
class Base:
    """A model that is valid before it is mutated."""

    name: str
    content: bytes


def bases(directory: Path) -> tuple[Base, ...]:
    """All models; data that some keep beside their file is written to ``directory``."""
    (directory / DATA).write_bytes(np.arange(64, dtype=np.float32).tobytes())
    made = (
        _mlp,
        _convolutions,
        _branches,
        _loop,
        _scan,
        _functions,
        _quantised,
        _small_types,
        _sparse,
        _words,
        _beside,
    )
    own = [Base(make.__name__.strip("_"), make().SerializeToString()) for make in made]
    return (*own, *_cases())


def _cases() -> list[Base]:
    folder = Path(onnx.__file__).parent / "backend/test/data/node"
    files = sorted(path for path in folder.glob("*/model.onnx") if path.stat().st_size <= CASE_BYTES)
    step = max(1, len(files) // CASES)
    return [Base(path.parent.name, path.read_bytes()) for path in files[::step]]


def _model(graph: GraphProto, functions: tuple[onnx.FunctionProto, ...] = ()) -> ModelProto:
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", 3), helper.make_opsetid("own", 1)]
    return helper.make_model(graph, opset_imports=imports, functions=functions, ir_version=10)


def _value(name: str, *shape: int | str, dtype: int = F32) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, dtype, shape)


def _tensor(name: str, *shape: int) -> TensorProto:
    return numpy_helper.from_array(np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape) / 8, name)


def _mlp() -> ModelProto:
    nodes = [
        helper.make_node("Gemm", ["x", "w", "b"], ["h"], name="first", transB=1, alpha=0.5),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("MatMul", ["r", "v"], ["s"]),
        helper.make_node("Softmax", ["s"], ["y"], axis=-1),
    ]
    weights = [_tensor("w", 5, 4), _tensor("b", 5), _tensor("v", 5, 3)]
    return _model(helper.make_graph(nodes, "mlp", [_value("x", "n", 4)], [_value("y", "n", 3)], weights))


def _convolutions() -> ModelProto:
    ones = {name: numpy_helper.from_array(np.ones(3, np.float32), name) for name in ("scale", "shift", "mean", "var")}
    shape = numpy_helper.from_array(np.array([1, -1], np.int64), "shape")
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2]),
        helper.make_node("BatchNormalization", ["c", "scale", "shift", "mean", "var"], ["n"], epsilon=1e-5),
        helper.make_node("Clip", ["n", "", "six"], ["r"]),
        helper.make_node("MaxPool", ["r"], ["p"], kernel_shape=[2, 2]),
        helper.make_node("Reshape", ["p", "shape"], ["y"]),
    ]
    six = numpy_helper.from_array(np.array(6, np.float32), "six")
    weights = [_tensor("w", 3, 2, 3, 3), *ones.values(), shape, six]
    return _model(helper.make_graph(nodes, "convolutions", [_value("x", 1, 2, 8, 8)], [_value("y", 1, 12)], weights))


def _branches() -> ModelProto:
    then = helper.make_graph([helper.make_node("Add", ["x", "x"], ["t"])], "then", [], [_value("t", 4)])
    deep = helper.make_graph([helper.make_node("Neg", ["x"], ["d"])], "deep", [], [_value("d", 4)])
    inner = [helper.make_node("If", ["c"], ["e"], then_branch=deep, else_branch=_renamed(deep))]
    other = helper.make_graph(inner, "else", [], [_value("e", 4)])
    nodes = [helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=other)]
    inputs = [_value("c", dtype=TensorProto.BOOL), _value("x", 4)]
    return _model(helper.make_graph(nodes, "branches", inputs, [_value("y", 4)]))


def _renamed(graph: GraphProto) -> GraphProto:
    copy = GraphProto()
    copy.CopyFrom(graph)
    copy.name = "deep too"
    return copy


def _loop() -> ModelProto:
    body = helper.make_graph(
        [
            helper.make_node("Add", ["state", "x"], ["next"]),
            helper.make_node("Identity", ["go"], ["on"]),
            helper.make_node("ReduceSum", ["next"], ["total"], keepdims=0),
        ],
        "body",
        [_value("i", dtype=TensorProto.INT64), _value("go", dtype=TensorProto.BOOL), _value("state", 3)],
        [_value("on", dtype=TensorProto.BOOL), _value("next", 3), _value("total")],
    )
    trips = numpy_helper.from_array(np.array(4, np.int64), "trips")
    nodes = [helper.make_node("Loop", ["trips", "", "x"], ["last", "totals"], body=body)]
    outputs = [_value("last", 3), _value("totals", "k")]
    return _model(helper.make_graph(nodes, "loop", [_value("x", 3)], outputs, [trips]))


def _scan() -> ModelProto:
    body = helper.make_graph(
        [helper.make_node("Add", ["s", "e"], ["n"]), helper.make_node("Identity", ["n"], ["o"])],
        "body",
        [_value("s", 2), _value("e", 2)],
        [_value("n", 2), _value("o", 2)],
    )
    nodes = [helper.make_node("Scan", ["z", "x"], ["last", "all"], body=body, num_scan_inputs=1)]
    outputs = [_value("last", 2), _value("all", 5, 2)]
    return _model(helper.make_graph(nodes, "scan", [_value("z", 2), _value("x", 5, 2)], outputs))


def _functions() -> ModelProto:
    scaled = NodeProto(op_type="LeakyRelu", input=["a"], output=["b"])
    scaled.attribute.add(name="alpha", ref_attr_name="slope", type=AttributeProto.FLOAT)
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("own", 1)]
    leaky = helper.make_function("own", "Leaky", ["a"], ["b"], [scaled], imports, ["slope"])
    calls = [
        helper.make_node("Leaky", ["a"], ["t"], domain="own", slope=0.25),
        helper.make_node("Mul", ["t", "t"], ["b"]),
    ]
    square = helper.make_function("own", "Square", ["a"], ["b"], calls, imports)
    nodes = [helper.make_node("Square", ["x"], ["y"], domain="own")]
    return _model(helper.make_graph(nodes, "functions", [_value("x", 6)], [_value("y", 6)]), (leaky, square))


def _quantised() -> ModelProto:
    step = numpy_helper.from_array(np.array(0.125, np.float32), "step")
    zero = numpy_helper.from_array(np.array(3, np.uint8), "zero")
    weights = helper.make_tensor("w", TensorProto.UINT8, [4, 2], [1, 2, 3, 4, 5, 6, 7, 8])
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "step", "zero"], ["q"]),
        helper.make_node("QLinearMatMul", ["q", "step", "zero", "w", "step", "zero", "step", "zero"], ["p"]),
        helper.make_node("DequantizeLinear", ["p", "step", "zero"], ["y"]),
    ]
    graph = helper.make_graph(nodes, "quantised", [_value("x", 3, 4)], [_value("y", 3, 2)], [step, zero, weights])
    return _model(graph)


def _small_types() -> ModelProto:
    kinds = {"INT4": [1, -2, 7], "UINT4": [1, 2, 15], "FLOAT16": [1.0, -2.0, 0.5], "BFLOAT16": [1.0, 2.0, 3.0]}
    kinds |= {
        "FLOAT8E4M3FN": [1.0, 0.5, 2.0],
        "FLOAT4E2M1": [1.0, 0.5, 2.0],
        "BOOL": [1, 0, 1],
        "DOUBLE": [1.0, 2.0, 3.0],
    }
    tensors = [helper.make_tensor(kind, getattr(TensorProto, kind), [3], values) for kind, values in kinds.items()]
    nodes = [helper.make_node("Cast", [kind], [f"y{kind}"], to=F32) for kind in kinds]
    outputs = [_value(f"y{kind}", 3) for kind in kinds]
    return _model(helper.make_graph(nodes, "small types", [_value("x", 1)], outputs, tensors))


def _sparse() -> ModelProto:
    values = numpy_helper.from_array(np.array([1.5, 2.5], np.float32), "sparse")
    at = numpy_helper.from_array(np.array([[0, 1], [2, 0]], np.int64), "at")
    sparse = helper.make_sparse_tensor(values, at, [3, 2])
    nodes = [
        helper.make_node("Constant", [], ["k"], sparse_value=sparse),
        helper.make_node("Add", ["x", "k"], ["s"]),
        helper.make_node("Add", ["s", "sparse"], ["y"]),
    ]
    graph = helper.make_graph(nodes, "sparse", [_value("x", 3, 2)], [_value("y", 3, 2)])
    graph.sparse_initializer.append(sparse)
    return _model(graph)


def _words() -> ModelProto:
    table = helper.make_tensor("table", TensorProto.STRING, [3], [b"one", b"two", b"drei"])
    nodes = [
        helper.make_node("Gather", ["table", "x"], ["w"]),
        helper.make_node("LabelEncoder", ["w"], ["n"], domain="ai.onnx.ml", keys_strings=["one"], values_int64s=[1]),
        helper.make_node("SequenceConstruct", ["n", "n"], ["s"]),
        helper.make_node("ConcatFromSequence", ["s"], ["y"], axis=0),
    ]
    inputs = [_value("x", 2, dtype=TensorProto.INT64)]
    outputs = [_value("y", 4, dtype=TensorProto.INT64)]
    return _model(helper.make_graph(nodes, "words", inputs, outputs, [table]))


def _beside() -> ModelProto:
    nodes = [
        helper.make_node("Constant", [], ["k"], value=external("", 16, 16, 4)),
        helper.make_node("Mul", ["x", "w"], ["m"]),
        helper.make_node("Add", ["m", "k"], ["y"]),
    ]
    weights = [external("w", 0, 16, 4)]
    return _model(helper.make_graph(nodes, "beside", [_value("x", 4)], [_value("y", 4)], weights))


def external(name: str, offset: int, length: int, *shape: int) -> TensorProto:
    """A tensor whose data lies beside the file."""
    tensor = TensorProto(name=name, dims=shape, data_type=F32, data_location=TensorProto.EXTERNAL)
    for key, value in (("location", DATA), ("offset", str(offset)), ("length", str(length))):
        tensor.external_data.add(key=key, value=value)
    return tensor
