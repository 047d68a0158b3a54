"""Damage to what a file says: a well-formed file of a model that means nothing, or something terrible."""

from __future__ import annotations

import contextlib
import math
import random
from collections.abc import Callable, Iterator

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto

from benchmarks.hostile.operators import OPERATORS

NUMBERS = (0, 1, 2, -1, 3, 7, 100, 2**31 - 1, 2**31, -(2**31), 2**32, 2**40, 2**62, 2**63 - 1, -(2**63))
REALS = (0.0, -0.0, 1.0, -1.0, 1e-40, 3e38, float("inf"), float("-inf"), float("nan"))
WORDS = ("", "x", "y", "a\nb", "\x1b[2J", "\u202ename", "\0", "n" * 5000, "ai.onnx", "../../etc/passwd", "/etc/passwd")
LOCATIONS = (*WORDS, "weights.bin", "./weights.bin", "a\\b", "weights.bin/", "//", ".", "..", "missing", "link", "pipe")


def mutate_structure(content: bytes, other: bytes, rng: random.Random) -> bytes:
    """A model like ``content`` with one to four changes of meaning; some parts come from ``other``."""
    model, donor = ModelProto.FromString(content), ModelProto.FromString(other)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 4))):
        with contextlib.suppress(DecodeError):  # as deep as protobuf goes
            rng.choice(_CHANGES)(model, donor, rng)
    return bytes(model.SerializePartialToString())


def _messages(message: Message) -> Iterator[Message]:
    """A message and all inside it."""
    waiting = [message]
    while waiting:
        current = waiting.pop()
        yield current
        for field, value in current.ListFields():
            if field.message_type is not None:
                waiting.extend(value if field.is_repeated else (value,))


def _pick(model: ModelProto, kind: type, rng: random.Random) -> Message | None:
    found = [message for message in _messages(model) if isinstance(message, kind)]
    return rng.choice(found) if found else None


def _any_field(model: ModelProto, donor: ModelProto, rng: random.Random) -> None:
    """Some field of some message, whatever it is."""
    message = rng.choice(list(_messages(model)))
    fields = [field for field, _ in message.ListFields()]
    field = rng.choice(fields if fields and rng.random() < 0.8 else list(message.DESCRIPTOR.fields))
    _change(message, field, model, donor, rng)


def _change(message: Message, field: FieldDescriptor, model: ModelProto, donor: ModelProto, rng: random.Random) -> None:
    if field.message_type is not None:
        _change_part(message, field, model if rng.random() < 0.5 else donor, rng)
        return
    value = _scalar(field, model, rng)
    if not field.is_repeated:
        if rng.random() < 0.1:
            message.ClearField(field.name)
        else:
            setattr(message, field.name, value)
        return
    entries = list(getattr(message, field.name))
    at = rng.randrange(len(entries) + 1)
    if rng.random() < 0.3 and entries:
        del entries[at % len(entries)]
    else:
        entries[at : at + rng.randint(0, 1)] = [value] * rng.choice((1, 1, 1, 2, 40))
    message.ClearField(field.name)
    getattr(message, field.name).extend(entries)


def _change_part(message: Message, field: FieldDescriptor, source: ModelProto, rng: random.Random) -> None:
    """Remove a part, or put one of the same type in from elsewhere."""
    if rng.random() < 0.3:
        if field.is_repeated and len(getattr(message, field.name)):
            del getattr(message, field.name)[rng.randrange(len(getattr(message, field.name)))]
        else:
            message.ClearField(field.name)
        return
    same = [part for part in _messages(source) if part.DESCRIPTOR.full_name == field.message_type.full_name]
    part = rng.choice(same) if same else None
    copy = None if part is None else type(part).FromString(part.SerializePartialToString())
    target = getattr(message, field.name).add() if field.is_repeated else getattr(message, field.name)
    target.SetInParent() if copy is None else target.CopyFrom(copy)


def _scalar(field: FieldDescriptor, model: ModelProto, rng: random.Random) -> object:
    if field.cpp_type in (FieldDescriptor.CPPTYPE_FLOAT, FieldDescriptor.CPPTYPE_DOUBLE):
        return rng.choice(REALS)
    if field.cpp_type == FieldDescriptor.CPPTYPE_ENUM:
        return rng.choice(field.enum_type.values).number
    if field.type == FieldDescriptor.TYPE_BYTES:
        return rng.choice((b"", b"\xff\xfe", b"\0", rng.randbytes(rng.randint(1, 64))))
    if field.type == FieldDescriptor.TYPE_STRING:
        return rng.choice((*WORDS, *_names(model)))
    number = rng.choice((*NUMBERS, rng.randrange(30)))
    bits = 31 if field.cpp_type == FieldDescriptor.CPPTYPE_INT32 else 63
    low = 0 if field.cpp_type == FieldDescriptor.CPPTYPE_UINT64 else -(2**bits)
    return max(low, min(2**bits - 1, number))


def _names(model: ModelProto) -> list[str]:
    return [name for node in _messages(model) if isinstance(node, NodeProto) for name in (*node.input, *node.output)]


def _edge(model: ModelProto, donor: ModelProto, rng: random.Random) -> None:
    """A node reads, or makes, another value."""
    node = _pick(model, NodeProto, rng)
    if node is None:
        return
    names = node.input if rng.random() < 0.7 else node.output
    word = rng.choice((*_names(model), ""))
    if names and rng.random() < 0.8:
        names[rng.randrange(len(names))] = word
    else:
        names.append(word)


def _operator(model: ModelProto, donor: ModelProto, rng: random.Random) -> None:
    node = _pick(model, NodeProto, rng)
    if node is not None:
        node.op_type = rng.choice(OPERATORS)


def _order(model: ModelProto, donor: ModelProto, rng: random.Random) -> None:
    """Nodes of a graph in another order, doubled or removed."""
    graph = _pick(model, GraphProto, rng)
    if graph is None or not graph.node:
        return
    nodes = [NodeProto.FromString(node.SerializePartialToString()) for node in graph.node]
    rng.choice((rng.shuffle, list.reverse, lambda n: n.append(rng.choice(n)), lambda n: n.pop()))(nodes)
    del graph.node[:]
    graph.node.extend(nodes)


def _attribute(model: ModelProto, donor: ModelProto, rng: random.Random) -> None:
    """An attribute from elsewhere, or one with other numbers."""
    node, part = _pick(model, NodeProto, rng), _pick(rng.choice((model, donor)), AttributeProto, rng)
    if node is None or part is None:
        return
    copy = AttributeProto.FromString(part.SerializePartialToString())
    if node.attribute and rng.random() < 0.7:
        own = rng.choice(node.attribute)
        if rng.random() < 0.5 and own.ints:
            own.ints[rng.randrange(len(own.ints))] = rng.choice(NUMBERS)
        elif own.type == AttributeProto.INT:
            own.i = rng.choice(NUMBERS)
        else:
            copy.name = own.name
            own.CopyFrom(copy)
    else:
        node.attribute.append(copy)


def _word(model: ModelProto, donor: ModelProto, rng: random.Random) -> None:
    """Another word where an attribute is one, or where it is a list of them."""
    words = [part for part in _messages(model) if isinstance(part, AttributeProto) and (part.s or part.strings)]
    if not words:
        return
    part = rng.choice(words)
    new = rng.choice((*WORDS, "NOTSET", "linear", "(a+)+b", "i,ij,jk->k", "...", "," * 4000)).encode()
    if part.strings:
        part.strings[rng.randrange(len(part.strings))] = new
    else:
        part.s = new


def _dims(model: ModelProto, donor: ModelProto, rng: random.Random) -> None:
    tensor = _pick(model, TensorProto, rng)
    if tensor is None:
        return
    if tensor.dims and rng.random() < 0.7:
        tensor.dims[rng.randrange(len(tensor.dims))] = rng.choice(NUMBERS)
    else:
        tensor.dims.extend([rng.choice(NUMBERS)] * rng.choice((1, 2, 70)))


def _values(model: ModelProto, donor: ModelProto, rng: random.Random) -> None:
    """Other numbers of a constant, of the same count: shapes, axes, indices that lie."""
    tensor = _pick(model, TensorProto, rng)
    if tensor is None or not tensor.raw_data:
        return
    width = 8 if tensor.data_type == TensorProto.INT64 else 4
    at = rng.randrange(len(tensor.raw_data)) // width * width
    number = (rng.choice(NUMBERS) & (1 << 8 * width) - 1).to_bytes(width, "little")
    tensor.raw_data = (tensor.raw_data[:at] + number + tensor.raw_data[at + width :])[: len(tensor.raw_data)]


def _freeze(model: ModelProto, donor: ModelProto, rng: random.Random) -> None:
    """An input becomes a constant of odd numbers: what was looked at when the model runs is looked at now."""
    given = [value for value in model.graph.input if value.type.HasField("tensor_type")]
    if not given:
        return
    value = rng.choice(given)
    dims = [rng.choice((dim.dim_value, dim.dim_value, 1, 2)) for dim in value.type.tensor_type.shape.dim]
    dtype, count = value.type.tensor_type.elem_type, math.prod(dims)
    width = 8 if dtype in (TensorProto.INT64, TensorProto.DOUBLE, TensorProto.UINT64) else 4
    if not 0 <= count <= 4096 or dtype not in (1, 6, 7, 11, 12, 13):
        return
    numbers = (rng.choice((*NUMBERS, *range(-3, 9))) if dtype in (6, 7) else rng.getrandbits(62) for _ in range(count))
    raw = b"".join((number & (1 << 8 * width) - 1).to_bytes(width, "little") for number in numbers)
    model.graph.initializer.add(name=value.name, data_type=dtype, dims=dims, raw_data=raw)
    model.graph.input.remove(value)


def _stated(model: ModelProto, donor: ModelProto, rng: random.Random) -> None:
    """Another type of an input or output."""
    value = _pick(model, ValueInfoProto, rng)
    if value is None or not value.type.HasField("tensor_type"):
        return
    if rng.random() < 0.3:
        value.type.tensor_type.elem_type = rng.randrange(30)
    elif value.type.tensor_type.shape.dim:
        rng.choice(value.type.tensor_type.shape.dim).dim_value = rng.choice(NUMBERS)


def _opset(model: ModelProto, donor: ModelProto, rng: random.Random) -> None:
    if model.opset_import:
        rng.choice(model.opset_import).version = rng.choice((*NUMBERS, *range(1, 28)))


def _deepen(model: ModelProto, donor: ModelProto, rng: random.Random) -> None:
    """The graph inside itself, several times."""
    for _ in range(rng.choice((1, 3, 12, 40))):
        whole = model.graph.SerializePartialToString()
        node = NodeProto(op_type="If", input=["c"], output=["deep"])
        node.attribute.add(name="then_branch", type=AttributeProto.GRAPH).g.MergeFromString(whole)
        node.attribute.add(name="else_branch", type=AttributeProto.GRAPH).g.name = "else"
        if len(whole) < 1 << 16:
            deeper = GraphProto(node=[node])
            model.graph.ClearField("node")
            model.graph.MergeFrom(deeper)


def _outside(model: ModelProto, donor: ModelProto, rng: random.Random) -> None:
    """The data of a tensor is said to lie in some file."""
    tensor = _pick(model, TensorProto, rng)
    if tensor is None:
        return
    if rng.random() < 0.5:
        tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    numbers = [str(number) for number in NUMBERS] + ["1e3", " 4", "\u0661", "16", "64"]
    for key, values in (("location", LOCATIONS), ("offset", numbers), ("length", numbers)):
        if rng.random() < 0.7:
            tensor.external_data.add(key=key, value=rng.choice(values))


_CHANGES: tuple[Callable[[ModelProto, ModelProto, random.Random], None], ...] = (
    _any_field,
    _any_field,
    _any_field,
    _edge,
    _operator,
    _order,
    _attribute,
    _attribute,
    _word,
    _dims,
    _values,
    _freeze,
    _freeze,
    _freeze,
    _stated,
    _opset,
    _deepen,
    _outside,
)
