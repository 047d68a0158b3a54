"""Matrix products of whole operands are what the reference evaluator computes."""

from __future__ import annotations

import numpy as np
import pytest

from dovetail.base.dtypes import DType
from dovetail.ir.evaluate import run_statement
from dovetail.ir.parse import parse
from dovetail.sim.product import product_of

PRODUCTS = {
    "matrices": "in a: i8[5,7]  in b: i8[7,6]  inout y: i32[5,6]\nfor i<5, j<6, k<7: y[i,j] += a[i,k] * b[k,j]",
    "transposed": "in a: i8[7,5]  in b: i8[6,7]  inout y: i32[6,5]\nfor i<5, j<6, k<7: y[j,i] += b[j,k] * a[k,i]",
    "a vector": "in w: f32[5,7]  in x: f32[7]  inout y: f32[5]\nfor i<5, k<7: y[i] += w[i,k] * x[k]",
    "batched": "in a: f16[3,5,7]  in b: f16[7,3,6]  inout y: f32[5,3,6]\n"
    "for n<3, i<5, j<6, k<7: y[i,n,j] += a[n,i,k] * b[k,n,j]",
    "outer": "in a: i16[5]  in b: i16[6]  inout y: i16[5,6]\nfor i<5, j<6: y[i,j] += a[i] * b[j]",
    "one row": "in a: i8[1,7]  in b: i8[7,6]  inout y: i32[1,6]\nfor i<1, j<6, k<7: y[i,j] += a[i,k] * b[k,j]",
    "small floats": "in a: f8e4m3fn[5,7]  in b: f8e4m3fn[7,6]  inout y: f16[5,6]\n"
    "for i<5, j<6, k<7: y[i,j] += a[i,k] * b[k,j]",
    "wrapping": "in a: u8[5,7]  in b: u8[7,6]  inout y: u8[5,6]\nfor i<5, j<6, k<7: y[i,j] += a[i,k] * b[k,j]",
}
OTHERS = {
    "a window": "in a: i8[9]  in b: i8[3]  inout y: i32[7]\nfor i<7, k<3: y[i] += a[i+k] * b[k]",
    "a part": "in a: i8[5,8]  in b: i8[8,6]  inout y: i32[5,6]\nfor i<5, j<6, k<7: y[i,j] += a[i,k] * b[k,j]",
    "guarded": "in a: i8[5]  in b: i8[5]  inout y: i32[5]\nfor i<5 where i >= 2: y[i] += a[i] * b[i]",
    "a square": "in a: i8[5,5]  inout y: i32[5,5]\nfor i<5, j<5, k<5: y[i,j] += a[i,k] * a[k,j]",
    "summed alone": "in a: i8[5,7]  in b: i8[5]  inout y: i32[5]\nfor i<5, k<7: y[i] += a[i,k] * b[i]",
    "beyond float64": "in a: i64[5,7]  in b: i64[7,6]  inout y: i64[5,6]\nfor i<5, j<6, k<7: y[i,j] += a[i,k] * b[k,j]",
    "a largest": "in a: i8[5,7]  in b: i8[7]  inout y: i32[5]\nfor i<5, k<7: y[i] max= a[i,k] * b[k]",
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_a_product_is_the_reference_to_the_bit_on_whole_numbers(name: str) -> None:
    program = parse(PRODUCTS[name])
    statement, shapes = program.statements[0], {t.name: tuple(e.const for e in t.shape) for t in program.tensors}
    product = product_of(statement, program.dtypes, {x.name: x.extent.const for x in statement.loops}, shapes)
    assert product is not None
    rng = np.random.default_rng(1)
    memory = {t.name: rng.integers(*_range(t.dtype), shapes[t.name]).astype(t.dtype.numpy) for t in program.tensors}
    wanted = {key: array.copy() for key, array in memory.items()}
    product.run(memory)
    run_statement(statement, program.dtypes, wanted, {})
    np.testing.assert_array_equal(memory["y"], wanted["y"])


@pytest.mark.parametrize("name", OTHERS)
def test_other_forms_are_left_to_the_reference(name: str) -> None:
    program = parse(OTHERS[name])
    statement, shapes = program.statements[0], {t.name: tuple(e.const for e in t.shape) for t in program.tensors}
    extents = {x.name: x.extent.const for x in statement.loops}
    assert product_of(statement, program.dtypes, extents, shapes) is None


def _range(kind: DType) -> tuple[int, int]:
    return (-3, 4) if kind.is_float else (kind.low // 8, kind.high // 8 + 1)
