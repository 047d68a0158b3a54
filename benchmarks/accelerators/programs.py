"""Operators as programs, in the layouts and dtypes that each simulated machine is at home with.

    Types("f16", "f16", "f32")   data, weights, sums: products are formed and added up in the sums' dtype

A machine's vector unit adds, multiplies and takes tanh, so the recurrent cells say no more than that: a sigmoid is
``0.5 * tanh(0.5 * x) + 0.5``, and the numbers one half, one and minus one are vectors among the inputs.
"""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.shapes import Conv, Gemm


@dataclass(frozen=True, slots=True)
class Types:
    """dtypes of what flows, of what stays, and of the sums."""

    data: str
    weights: str
    sums: str

    def __str__(self) -> str:
        return f"{self.data}*{self.weights}" if self.data != self.weights else self.data


F64 = Types("f64", "f64", "f64")
F16 = Types("f16", "f16", "f32")
F8 = Types("f16", "f8e4m3fn", "f32")
F8_ALL = Types("f8e4m3fn", "f8e4m3fn", "f32")
I8 = Types("i8", "i8", "i32")


@dataclass(frozen=True, slots=True)
class Cell:
    """A recurrent cell over ``steps``; as many inputs as units."""

    kind: str
    hidden: int
    batch: int
    steps: int

    @property
    def label(self) -> str:
        return f"{self.kind} h{self.hidden} b{self.batch} t{self.steps}"

    @property
    def gates(self) -> int:
        return {"gru": 3, "lstm": 4}[self.kind]

    @property
    def macs(self) -> int:
        return 2 * self.steps * self.batch * self.gates * self.hidden**2


def gemm(shape: Gemm, types: Types) -> str:
    """``c = a * b``, row-major. Where dtypes differ the weights are ``b``, or ``a`` when ``b`` is a few vectors."""
    m, n, k = shape.m, shape.n, shape.k
    first, second = (types.weights, types.data) if n < 64 else (types.data, types.weights)
    return _text(
        f"in a: {first}[{m},{k}]",
        f"in b: {second}[{k},{n}]",
        f"out c: {types.sums}[{m},{n}]",
        f"for i<{m}, j<{n}, l<{k}: c[i,j] += a[i,l] * b[l,j]",
    )


def batch_last_conv(conv: Conv, types: Types) -> str:
    """[row][column][channel][batch] and [r][s][k][c]: the batch is innermost."""
    (height, width), (p, q), (r, s) = conv.spatial, conv.out, conv.kernel
    row, column, where = _window(conv)
    return _text(
        f"in x: {types.data}[{height},{width},{conv.c},{conv.n}]",
        f"const w: {types.weights}[{r},{s},{conv.k},{conv.c}]",
        f"out y: {types.sums}[{p},{q},{conv.k},{conv.n}]",
        f"for p<{p}, q<{q}, k<{conv.k}, n<{conv.n}, c<{conv.c}, r<{r}, s<{s}{where}: "
        f"y[p,q,k,n] += x[{row},{column},c,n] * w[r,s,k,c]",
    )


def channels_last_conv(conv: Conv, types: Types) -> str:
    """[batch][row][column][channel] and [r][s][c][k]: channels are innermost, whatever the batch."""
    (height, width), (p, q), (r, s) = conv.spatial, conv.out, conv.kernel
    row, column, where = _window(conv)
    return _text(
        f"in x: {types.data}[{conv.n},{height},{width},{conv.c}]",
        f"const w: {types.weights}[{r},{s},{conv.c},{conv.k}]",
        f"out y: {types.sums}[{conv.n},{p},{q},{conv.k}]",
        f"for n<{conv.n}, p<{p}, q<{q}, k<{conv.k}, c<{conv.c}, r<{r}, s<{s}{where}: "
        f"y[n,p,q,k] += x[n,{row},{column},c] * w[r,s,c,k]",
    )


def separable(size: int, channels: int, filters: int, types: Types) -> str:
    """A depthwise 3x3 convolution, then a 1x1 one: the product is in the second."""
    wide = size + 2
    return _text(
        f"in x: {types.data}[{wide},{wide},{channels}]",
        f"const d: {types.data}[3,3,{channels}]",
        f"const w: {types.weights}[{channels},{filters}]",
        f"temp h: {types.data}[{size},{size},{channels}]",
        f"out y: {types.sums}[{size},{size},{filters}]",
        f"for p<{size}, q<{size}, c<{channels}, r<3, s<3: h[p,q,c] += x[p+r,q+s,c] * d[r,s,c]",
        f"for p<{size}, q<{size}, k<{filters}, c<{channels}: y[p,q,k] += h[p,q,c] * w[c,k]",
    )


def softmax(rows: int, columns: int, dtype: str) -> str:
    points = f"for i<{rows}, j<{columns}"
    return _text(
        f"in x: {dtype}[{rows},{columns}]",
        f"temp m: {dtype}[{rows}]",
        f"temp e: {dtype}[{rows},{columns}]",
        f"temp s: {dtype}[{rows}]",
        f"out y: {dtype}[{rows},{columns}]",
        f"{points}: m[i] max= x[i,j]",
        f"{points}: e[i,j] = exp(x[i,j] - m[i])",
        f"{points}: s[i] += e[i,j]",
        f"{points}: y[i,j] = e[i,j] / s[i]",
    )


def layer_norm(rows: int, columns: int, dtype: str) -> str:
    """The mean and the variance by sums, then scale and shift."""
    points = f"for i<{rows}, j<{columns}"
    return _text(
        f"in x: {dtype}[{rows},{columns}]",
        f"const scale: {dtype}[{columns}]",
        f"const shift: {dtype}[{columns}]",
        f"temp s: {dtype}[{rows}]",
        f"temp v: {dtype}[{rows}]",
        f"out y: {dtype}[{rows},{columns}]",
        f"{points}: s[i] += x[i,j]",
        f"{points}: v[i] += (x[i,j] - s[i] / {columns}) * (x[i,j] - s[i] / {columns})",
        f"{points}: y[i,j] = (x[i,j] - s[i] / {columns}) * rsqrt(v[i] / {columns} + 1) * scale[j] + shift[j]",
    )


def cell(shape: Cell, types: Types) -> str:
    """The recurrence of ``shape``."""
    return {"gru": gru, "lstm": lstm}[shape.kind](shape, types)


def gru(shape: Cell, types: Types) -> str:
    """``f' = (1 - z) * n + z * f`` with ``n = tanh(Wx + r * (Uh + b))``: the form with one recurrent product a step."""
    h = shape.hidden
    return _text(
        *_cell_declarations(shape, types, ("e", "o", "m", "s"), ("q", "p", "a", "n", "v", "i", "z", "d")),
        *_cell_products(shape),
        _each(shape, 2 * h, f"g[t,b,j] = {_sums('x', 'j', types)} + {_sums('y', 'j', types)}"),
        _each(shape, 2 * h, "c[t,b,j] = g[t,b,j] + bias[j]"),
        *_sigmoid(shape, 2 * h),
        _each(shape, h, f"q[t,b,j] = {_sums('y', f'{2 * h}+j', types)} + bias[{2 * h}+j]"),
        _each(shape, h, f"p[t,b,j] = s[t,b,{h}+j] * q[t,b,j]"),
        _each(shape, h, f"a[t,b,j] = p[t,b,j] + {_sums('x', f'{2 * h}+j', types)}"),
        _each(shape, h, "n[t,b,j] = tanh(a[t,b,j])"),
        _each(shape, h, "v[t,b,j] = s[t,b,j] * minus[j]"),
        _each(shape, h, "i[t,b,j] = v[t,b,j] + one[j]"),
        _each(shape, h, "z[t,b,j] = s[t,b,j] * f[t,b,j]"),
        _each(shape, h, "d[t,b,j] = i[t,b,j] * n[t,b,j]"),
        _each(shape, h, "f[t+1,b,j] = d[t,b,j] + z[t,b,j]"),
        _each(shape, h, f"h[t+1,b,j] = {_rounded(types)}"),
    )


def lstm(shape: Cell, types: Types) -> str:
    """Gates in the order input, forget, output, cell; ``k`` is the cell's memory."""
    h = shape.hidden
    return _text(
        *_cell_declarations(shape, types, ("e", "o", "m", "s"), ("n", "p", "q", "v")),
        f"in memory: {_element(types)}[{shape.batch},{h}]",
        f"temp k: {_element(types)}[{shape.steps + 1},{shape.batch},{h}]",
        f"for b<{shape.batch}, j<{h}: k[0,b,j] = memory[b,j]",
        *_cell_products(shape),
        _each(shape, 4 * h, f"g[t,b,j] = {_sums('x', 'j', types)} + {_sums('y', 'j', types)}"),
        _each(shape, 4 * h, "c[t,b,j] = g[t,b,j] + bias[j]"),
        *_sigmoid(shape, 3 * h),
        _each(shape, h, f"n[t,b,j] = tanh(c[t,b,{3 * h}+j])"),
        _each(shape, h, "p[t,b,j] = s[t,b,j] * n[t,b,j]"),
        _each(shape, h, f"q[t,b,j] = s[t,b,{h}+j] * k[t,b,j]"),
        _each(shape, h, "k[t+1,b,j] = p[t,b,j] + q[t,b,j]"),
        _each(shape, h, "v[t,b,j] = tanh(k[t+1,b,j])"),
        _each(shape, h, f"f[t+1,b,j] = s[t,b,{2 * h}+j] * v[t,b,j]"),
        _each(shape, h, f"h[t+1,b,j] = {_rounded(types)}"),
    )


def _cell_declarations(shape: Cell, types: Types, wide: tuple[str, ...], narrow: tuple[str, ...]) -> tuple[str, ...]:
    """Inputs, products ``x`` and ``y``, temporaries of all gates and of one; ``f`` is the state, ``h`` its rounding."""
    h, b, t, gates, element = shape.hidden, shape.batch, shape.steps, shape.gates, _element(types)
    sigmoids = (gates - 1) * h
    return (
        f"in input: {types.data}[{t},{b},{h}]",
        f"in start: {element}[{b},{h}]",
        f"const w: {types.weights}[{h},{gates * h}]",
        f"const u: {types.weights}[{h},{gates * h}]",
        f"const bias: {element}[{gates * h}]",
        f"const half: {element}[{sigmoids}]",
        *(f"const {name}: {element}[{h}]" for name in ("minus", "one") if shape.kind == "gru"),
        f"temp x: {types.sums}[{t},{b},{gates * h}]",
        f"temp y: {types.sums}[{t},{b},{gates * h}]",
        *(f"temp {name}: {element}[{t},{b},{gates * h if shape.kind == 'lstm' else sigmoids}]" for name in "gc"),
        *(f"temp {name}: {element}[{t},{b},{sigmoids}]" for name in wide),
        *(f"temp {name}: {element}[{t},{b},{h}]" for name in narrow),
        f"temp h: {types.data}[{t + 1},{b},{h}]",
        f"out f: {element}[{t + 1},{b},{h}]",
    )


def _cell_products(shape: Cell) -> tuple[str, ...]:
    """The first states, the products of all inputs, and the recurrent product of each step."""
    h, b, t, gates = shape.hidden, shape.batch, shape.steps, shape.gates
    return (
        f"for b<{b}, j<{h}: f[0,b,j] = start[b,j]",
        f"for b<{b}, j<{h}: h[0,b,j] = start[b,j]",
        f"for t<{t}, b<{b}, j<{gates * h}, l<{h}: x[t,b,j] += input[t,b,l] * w[l,j]",
        f"seq t<{t}: for b<{b}, j<{gates * h}, l<{h}: y[t,b,j] += h[t,b,l] * u[l,j]",
    )


def _sigmoid(shape: Cell, width: int) -> tuple[str, ...]:
    """``s = 0.5 * tanh(0.5 * c) + 0.5`` over the first ``width`` of all gates."""
    return (
        _each(shape, width, "e[t,b,j] = c[t,b,j] * half[j]"),
        _each(shape, width, "o[t,b,j] = tanh(e[t,b,j])"),
        _each(shape, width, "m[t,b,j] = o[t,b,j] * half[j]"),
        _each(shape, width, "s[t,b,j] = m[t,b,j] + half[j]"),
    )


def _each(shape: Cell, width: int, statement: str) -> str:
    return f"seq t<{shape.steps}: for b<{shape.batch}, j<{width}: {statement}"


def _element(types: Types) -> str:
    """What is computed with between the products."""
    return types.sums if types.sums.startswith("f") else "f32"


def _sums(name: str, index: str, types: Types) -> str:
    read = f"{name}[t,b,{index}]"
    return read if types.sums.startswith("f") else f"f32({read})"


def _rounded(types: Types) -> str:
    """The state as the next product reads it; as an integer in sixteenths."""
    return "f[t+1,b,j]" if types.sums.startswith("f") else "i8(round(f[t+1,b,j] * 16))"


def _window(conv: Conv) -> tuple[str, str, str]:
    """Row and column of the input, and the conditions under which they lie in the image."""
    texts, conditions = [], []
    for axis, (out, tap) in enumerate((("p", "r"), ("q", "s"))):
        stride, pad, extent = conv.stride[axis], conv.pad[axis], conv.spatial[axis]
        text = (out if stride == 1 else f"{stride}*{out}") + f"+{tap}" + (f"-{pad}" if pad else "")
        if pad or conv.pad_end[axis] > 0:
            conditions.append(f"0 <= {text} < {extent}")
        texts.append(text)
    return texts[0], texts[1], " where " + ", ".join(conditions) if conditions else ""


def _text(*lines: str) -> str:
    return "\n".join(lines) + "\n"
