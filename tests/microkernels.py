"""An expert's microkernels, made with LLVM's assembler: there is no C compiler to ask for one.

c[i * ldc + j] += a[i * lda + k * ska] * b[k * ldb + j]    for i < rows, j < columns, k < depth, in registers
"""

from __future__ import annotations

from pathlib import Path

from dovetail.runtime.jit import compile_ir


def strided(symbol: str, rows: int, columns: int) -> str:
    """``void symbol(c, a, b, i64 ldc, i64 lda, i64 ska, i64 ldb, i32 depth)``: rows of c and b side by side."""
    head = "ptr %c, ptr %a, ptr %b, i64 %ldc, i64 %lda, i64 %ska, i64 %ldb, i32 %depth"
    return _kernel(symbol, head, rows, columns)


def packed(symbol: str, rows: int, columns: int) -> str:
    """``void symbol(c, a, b, i64 ldc, i32 depth)`` over panels a[k][rows] and b[k][columns]."""
    body = _kernel("inner", "ptr %c, ptr %a, ptr %b, i64 %ldc, i64 %lda, i64 %ska, i64 %ldb, i32 %depth", rows, columns)
    call = f"call void @inner(ptr %c, ptr %a, ptr %b, i64 %ldc, i64 1, i64 {rows}, i64 {columns}, i32 %depth)"
    head = "ptr %c, ptr %a, ptr %b, i64 %ldc, i32 %depth"
    return (
        f"{body.replace('define', 'define internal', 1)}\ndefine void @{symbol}({head}) {{\n  {call}\n  ret void\n}}\n"
    )


def write_object(path: Path, text: str) -> None:
    path.write_bytes(compile_ir(text))


def _kernel(symbol: str, head: str, rows: int, columns: int) -> str:
    vector = f"<{columns} x float>"
    lines = [f"define void @{symbol}({head}) {{", "entry:"]
    for i in range(rows):
        lines.append(f"  %o{i} = mul i64 %ldc, {i}")
        lines.append(f"  %p{i} = getelementptr float, ptr %c, i64 %o{i}")
        lines.append(f"  %s{i} = load {vector}, ptr %p{i}, align 4")
        lines.append(f"  %r{i} = mul i64 %lda, {i}")
    lines += ["  %last = sext i32 %depth to i64", "  br label %loop", "loop:"]
    lines.append("  %k = phi i64 [ 0, %entry ], [ %next, %loop ]")
    lines += [f"  %t{i} = phi {vector} [ %s{i}, %entry ], [ %u{i}, %loop ]" for i in range(rows)]
    lines += ["  %bo = mul i64 %k, %ldb", "  %bp = getelementptr float, ptr %b, i64 %bo"]
    lines += [f"  %bv = load {vector}, ptr %bp, align 4", "  %ak = mul i64 %k, %ska"]
    for i in range(rows):
        lines += [f"  %ao{i} = add i64 %ak, %r{i}", f"  %ap{i} = getelementptr float, ptr %a, i64 %ao{i}"]
        lines += [f"  %av{i} = load float, ptr %ap{i}, align 4"]
        lines += [f"  %in{i} = insertelement {vector} poison, float %av{i}, i32 0"]
        lines += [f"  %sp{i} = shufflevector {vector} %in{i}, {vector} poison, <{columns} x i32> zeroinitializer"]
        lines += [f"  %m{i} = fmul {vector} %sp{i}, %bv", f"  %u{i} = fadd {vector} %t{i}, %m{i}"]
    lines += ["  %next = add i64 %k, 1", "  %more = icmp slt i64 %next, %last"]
    lines += ["  br i1 %more, label %loop, label %done", "done:"]
    lines += [f"  store {vector} %u{i}, ptr %p{i}, align 4" for i in range(rows)]
    return "\n".join([*lines, "  ret void", "}", ""])


def transpose(symbol: str, rows: int, columns: int) -> str:
    """``void symbol(y, x, i64 ldy, i64 ldx)``: y[j * ldy + i] = x[i * ldx + j] for i < rows, j < columns."""
    lines = [f"define void @{symbol}(ptr %y, ptr %x, i64 %ldy, i64 %ldx) {{"]
    for i in range(rows):
        for j in range(columns):
            n = f"{i}.{j}"
            lines += [f"  %a{n} = mul i64 %ldx, {i}", f"  %b{n} = add i64 %a{n}, {j}"]
            lines += [f"  %p{n} = getelementptr float, ptr %x, i64 %b{n}", f"  %v{n} = load float, ptr %p{n}, align 4"]
            lines += [f"  %c{n} = mul i64 %ldy, {j}", f"  %d{n} = add i64 %c{n}, {i}"]
            lines += [f"  %q{n} = getelementptr float, ptr %y, i64 %d{n}", f"  store float %v{n}, ptr %q{n}, align 4"]
    return "\n".join([*lines, "  ret void", "}", ""])
