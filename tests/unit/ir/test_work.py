"""Counting the least a program has to do."""

from dovetail.ir.parse import parse
from dovetail.ir.work import Work, work


def test_a_matrix_product_counts_two_operations_a_point_and_each_operand_once() -> None:
    program = parse("in a: f32[2,3] in b: f32[3,5] out c: f32[2,5] for i<2, j<5, k<3: c[i,j] += a[i,k] * b[k,j]")
    assert work(program, {}) == Work(2 * 2 * 3 * 5, 4 * (6 + 15 + 10))


def test_steps_and_sizes_count_and_temporaries_are_not_moved() -> None:
    text = """
    size T in 1..9
    in x: f64[T]  temp s: f64[T+1]  out y: f64[T+1]
    s[0] = 0
    seq t<T: s[t+1] = s[t] + x[t]
    for i<T+1: y[i] = s[i]
    """
    assert work(parse(text), {"T": 4}) == Work(4, 8 * (4 + 5))
