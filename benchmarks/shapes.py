"""Problem shapes: what they are, what they cost, and how the shape files spell them.

Gemm    C[m,n] = op(A)[m,k] * op(B)[k,n]
Matmul  batched and broadcast, as two operand shapes of equal rank
Conv    1, 2 or 3 spatial axes (outermost first), batch, groups, stride, padding, dilation (1 = none)

A file is a JSON object with any of the lists ``gemm``, ``conv``, ``convs`` and ``matmul``; ``read_shapes`` reads
all that are there. Entries of ``conv`` may be in the spelling of DeepBench or of benchdnn.
"""

import difflib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

SHAPES = Path(__file__).parent / "shapes"
FLOAT_BYTES = 4

Axes = tuple[int, ...]


class ShapeFileError(ValueError):
    """A shape file that cannot be read; the message names file, list, entry and key."""


@dataclass(frozen=True, slots=True)
class Gemm:
    """``C[m,n] = op(A)[m,k] * op(B)[k,n]``; a transposed operand is stored with its axes exchanged."""

    m: int
    n: int
    k: int
    trans_a: bool = False
    trans_b: bool = False

    @property
    def label(self) -> str:
        transposed = ("t" if self.trans_a else "n") + ("t" if self.trans_b else "n")
        return f"m{self.m} n{self.n} k{self.k}" + ("" if transposed == "nn" else f" {transposed}")

    @property
    def a_shape(self) -> tuple[int, int]:
        return (self.k, self.m) if self.trans_a else (self.m, self.k)

    @property
    def b_shape(self) -> tuple[int, int]:
        return (self.n, self.k) if self.trans_b else (self.k, self.n)

    @property
    def flops(self) -> int:
        return 2 * self.m * self.n * self.k

    @property
    def bytes(self) -> int:
        return FLOAT_BYTES * (self.m * self.k + self.k * self.n + self.m * self.n)


@dataclass(frozen=True, slots=True)
class Matmul:
    """``C[batch,m,n] = A[batch,m,k] * B[batch,k,n]``; a batch extent of 1 is broadcast."""

    a: Axes
    b: Axes

    @property
    def label(self) -> str:
        return "x".join(map(str, self.a)) + ":" + "x".join(map(str, self.b))

    @property
    def out(self) -> Axes:
        batch = tuple(y if x == 1 else x for x, y in zip(self.a[:-2], self.b[:-2], strict=True))
        return (*batch, self.a[-2], self.b[-1])

    @property
    def flops(self) -> int:
        return 2 * math.prod(self.out) * self.a[-1]

    @property
    def bytes(self) -> int:
        return FLOAT_BYTES * (math.prod(self.a) + math.prod(self.b) + math.prod(self.out))


@dataclass(frozen=True, slots=True)
class Conv:
    """A convolution, NCHW. ``pad`` is the padding before each axis; ``out`` fixes how much is read after it."""

    n: int
    c: int
    k: int
    spatial: Axes
    kernel: Axes
    out: Axes
    stride: Axes
    pad: Axes
    dilation: Axes
    groups: int = 1
    name: str = ""

    @property
    def label(self) -> str:
        """All that tells two convolutions apart, on one line."""
        size, kernel = ("x".join(map(str, axes)) for axes in (self.spatial, self.kernel))
        text = f"{self.name} n{self.n} c{self.c} {size} k{self.k} {kernel}/{_short(self.stride)}"
        text += f" p{_short(self.pad)}" if any(self.pad) else ""
        text += f" d{_short(self.dilation)}" if any(d > 1 for d in self.dilation) else ""
        text += f" g{self.groups}" if self.groups > 1 else ""
        return text.strip()

    @property
    def x_shape(self) -> Axes:
        return (self.n, self.c, *self.spatial)

    @property
    def w_shape(self) -> Axes:
        return (self.k, self.c // self.groups, *self.kernel)

    @property
    def y_shape(self) -> Axes:
        return (self.n, self.k, *self.out)

    @property
    def pad_end(self) -> Axes:
        """How far the last window reaches beyond each axis; negative where it ends before."""
        axes = zip(self.out, self.stride, self.kernel, self.dilation, self.spatial, self.pad, strict=True)
        return tuple((o - 1) * st + (k - 1) * d + 1 - i - p for o, st, k, d, i, p in axes)

    @property
    def symmetric(self) -> bool:
        """Whether the same padding on both sides gives the same ``out``."""
        axes = zip(self.spatial, self.pad, self.kernel, self.dilation, self.stride, strict=True)
        return self.out == tuple(output_extent(i, p, k, d, st) for i, p, k, d, st in axes)

    @property
    def flops(self) -> int:
        """Multiply-adds times two, padded points included, as every benchmark of the field counts them."""
        return 2 * math.prod(self.y_shape) * (self.c // self.groups) * math.prod(self.kernel)

    @property
    def bytes(self) -> int:
        return FLOAT_BYTES * sum(math.prod(shape) for shape in (self.x_shape, self.w_shape, self.y_shape))


Shape = Gemm | Matmul | Conv


@dataclass(frozen=True, slots=True)
class Shapes:
    """Everything one shape file holds. ``skipped`` says which entries are not problems, and why."""

    path: Path
    gemms: tuple[Gemm, ...] = ()
    convs: tuple[Conv, ...] = ()
    matmuls: tuple[Matmul, ...] = ()
    skipped: tuple[str, ...] = ()


def read_shapes(path: Path) -> Shapes:
    """All problems of the file at ``path``; raises ShapeFileError where something cannot be read."""
    document = _load(path)
    gemms = [read_gemm(_Entry(path, "gemm", i, e)) for i, e in enumerate(_list(path, document, "gemm"))]
    convs = [
        read_conv(_Entry(path, name, i, e))
        for name in ("conv", "convs")
        for i, e in enumerate(_list(path, document, name))
    ]
    texts = _list(path, document, "matmul")
    matmuls = [read_matmul(_Entry(path, "matmul", i, text)) for i, text in enumerate(texts)]
    if not gemms and not convs and not matmuls:
        raise ShapeFileError(f"{path}: no list 'gemm', 'conv', 'convs' or 'matmul' with entries in it")
    return Shapes(
        path,
        tuple(gemms),
        tuple(convs),
        tuple(m for m in matmuls if isinstance(m, Matmul)),
        tuple(m for m in matmuls if isinstance(m, str)),
    )


@dataclass(frozen=True, slots=True)
class _Entry:
    """One element of one list of a shape file: its value, and the place for messages."""

    path: Path
    list_name: str
    index: int
    value: object

    def fail(self, why: str) -> ShapeFileError:
        return ShapeFileError(f"{self.path}: {self.list_name}[{self.index}]: {why}")

    def fields(self) -> Mapping[str, object]:
        if not isinstance(self.value, dict):
            raise self.fail(f"expected an object, found {self.value!r}")
        return self.value

    def integer(self, key: str, default: int | None = None, least: int = 1) -> int:
        fields = self.fields()
        value = fields.get(key, default)
        if value is None:
            close = difflib.get_close_matches(key, fields, n=1, cutoff=0.5)
            raise self.fail(f"key {key!r} is missing" + (f"; did you mean {close[0]!r}?" if close else ""))
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise self.fail(f"{key!r} should be an integer of at least {least}, found {value!r}")
        return value

    def boolean(self, key: str) -> bool:
        value = self.fields().get(key, False)
        if not isinstance(value, bool):
            raise self.fail(f"{key!r} should be true or false, found {value!r}")
        return value


def read_gemm(entry: _Entry) -> Gemm:
    m, n, k = (entry.integer(key) for key in ("m", "n", "k"))
    return Gemm(m, n, k, entry.boolean("transA"), entry.boolean("transB"))


def read_conv(entry: _Entry) -> Conv:
    """DeepBench's spelling (w, h, c, k, fw, fh ...) or benchdnn's (ic, oc, iw ...), told apart by ``ic``."""
    conv = _benchdnn_conv(entry) if "ic" in entry.fields() else _deepbench_conv(entry)
    if conv.c % conv.groups or conv.k % conv.groups:
        raise entry.fail(f"{conv.groups} groups do not divide {conv.c} input and {conv.k} output channels")
    if min(conv.out) < 1:
        raise entry.fail(f"the kernel {conv.kernel} does not fit into the padded input {conv.spatial}")
    return conv


def read_matmul(entry: _Entry) -> Matmul | str:
    """``"4x8x16:4x16x32"``; a text says why the entry is not a product of two operands of equal rank."""
    text = entry.value
    if not isinstance(text, str) or text.count(":") != 1:
        raise entry.fail(f"expected a text like '8x16:16x32', found {text!r}")
    try:
        a, b = (tuple(int(extent) for extent in side.split("x")) for side in text.split(":"))
    except ValueError:
        raise entry.fail(f"the extents of {text!r} are not integers") from None
    if len(a) != len(b) or len(a) < 2:
        return f"{text}: operands of rank {len(a)} and {len(b)}"
    batches = zip(a[:-2], b[:-2], strict=True)
    if a[-1] != b[-2] or any(x != y and 1 not in (x, y) for x, y in batches):
        raise entry.fail(f"the operands of {text!r} do not multiply")
    return Matmul(a, b)


def output_extent(extent: int, pad: int, kernel: int, dilation: int, stride: int) -> int:
    """How many windows fit with the same padding on both sides."""
    return (extent + 2 * pad - (kernel - 1) * dilation - 1) // stride + 1


def _deepbench_conv(entry: _Entry) -> Conv:
    spatial, kernel, stride = (
        (entry.integer(keys[0]), entry.integer(keys[1])) for keys in (("h", "w"), ("fh", "fw"), ("strh", "strw"))
    )
    pad = (entry.integer("padh", least=0), entry.integer("padw", least=0))
    n, c, k = entry.integer("n", 1), entry.integer("c"), entry.integer("k")
    axes = zip(spatial, pad, kernel, stride, strict=True)
    out = tuple(output_extent(i, p, f, 1, st) for i, p, f, st in axes)
    texts = (entry.fields().get(key) for key in ("id", "name"))
    name = " ".join(text for text in texts if isinstance(text, str))
    return Conv(n, c, k, spatial, kernel, out, stride, pad, (1, 1), name=name)


def _benchdnn_conv(entry: _Entry) -> Conv:
    """benchdnn's defaults: one group, stride 1, no dilation, padding that centres the windows; batch 1 here."""
    axes = "dhw"[-entry.integer("nd", 2) :]
    spatial, kernel = (tuple(entry.integer(key + axis) for axis in axes) for key in "ik")
    stride = tuple(entry.integer("s" + axis, 1) for axis in axes)
    dilation = tuple(entry.integer("d" + axis, 0, least=0) + 1 for axis in axes)
    pad, out = [], []
    for axis, i, f, st, d in zip(axes, spatial, kernel, stride, dilation, strict=True):
        reach = (f - 1) * d + 1
        given = entry.fields().get("o" + axis)
        centred = max(0, ((given - 1) * st - i + reach) // 2) if isinstance(given, int) else 0
        pad.append(entry.integer("p" + axis, centred, least=0))
        out.append(entry.integer("o" + axis, output_extent(i, pad[-1], f, d, st)))
    n, c, k, groups = entry.integer("mb", 1), entry.integer("ic"), entry.integer("oc"), entry.integer("g", 1)
    return Conv(n, c, k, spatial, kernel, tuple(out), stride, tuple(pad), dilation, groups)


def _load(path: Path) -> Mapping[str, object]:
    try:
        document: object = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ShapeFileError(f"{path}: cannot be read ({error.strerror}); give a shape file with --shapes") from error
    except json.JSONDecodeError as error:
        raise ShapeFileError(f"{path}:{error.lineno}: not JSON: {error.msg}") from error
    if not isinstance(document, dict):
        raise ShapeFileError(f"{path}: expected an object with lists of shapes, found {type(document).__name__}")
    return document


def _list(path: Path, document: Mapping[str, object], name: str) -> list[object]:
    value = document.get(name, [])
    if not isinstance(value, list):
        raise ShapeFileError(f"{path}: {name!r} should be a list, found {type(value).__name__}")
    return value


def _short(axes: Axes) -> str:
    return str(axes[0]) if len(set(axes)) == 1 else "x".join(map(str, axes))
