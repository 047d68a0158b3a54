"""Products with rows between them run block by block, exactly as one after the other."""

import numpy as np
import pytest

from dovetail.ir.evaluate import evaluate
from dovetail.ir.fill import fill
from dovetail.ir.parse import parse
from dovetail.ir.plan import Plan, Tile
from dovetail.ir.program import Program
from dovetail.pipeline import compile
from dovetail.schedule.chains import Chain, chain_from
from dovetail.schedule.collapse import collapse
from dovetail.schedule.default import default_plan, estimated_cycles
from dovetail.schedule.facts import facts_of
from dovetail.targets.load import load_target

HOST = load_target("x86-64-v3")


def rows_between(batch: int, heads: int, rows: int, keys: int, size: int = 5) -> str:
    """Products of integers, the largest of each row between them."""
    each = f"for b<{batch}, h<{heads}, i<{rows}"
    return f"""
in q: f32[{batch}, {rows}, {heads}, {size}]  in k: f32[{batch}, {keys}, {heads}, {size}]
in v: f32[{batch}, {keys}, {heads}, {size}]  in mask: f32[{rows}, {keys}]
out o: f32[{batch}, {rows}, {heads}, {size}]
temp s: f32[{batch}, {heads}, {rows}, {keys}]  temp t: f32[{batch}, {heads}, {rows}, {keys}]
temp m: f32[{batch}, {heads}, {rows}]  temp p: f32[{batch}, {heads}, {rows}, {keys}]
{each}, j<{keys}, l<{size}: s[b, h, i, j] += q[b, i, h, l] * k[b, j, h, l]
{each}, j<{keys}: t[b, h, i, j] = s[b, h, i, j] + mask[i, j]
{each}, j<{keys}: m[b, h, i] max= t[b, h, i, j]
{each}, j<{keys}: p[b, h, i, j] = max(t[b, h, i, j] - m[b, h, i] + 4, 0.0)
{each}, d<{size}, j<{keys}: o[b, i, h, d] += p[b, h, i, j] * v[b, j, h, d]
"""


def chain(text: str) -> Chain | None:
    program = parse(text)
    return chain_from(program, 0, set(), lambda number: facts_of(program, number))


def plan_of(text: str, threads: int = 2) -> Plan:
    return default_plan(collapse(parse(text)), HOST, threads)


def tiles_over(plan: Plan, program: Program) -> list[Tile]:
    """Tiles around every statement, outermost first."""
    found: list[Tile] = []
    nodes = plan.body
    while len(nodes) == 1 and isinstance(nodes[0], Tile) and len(nodes[0].loops) == len(program.statements):
        found.append(nodes[0])
        nodes = nodes[0].body
    return found


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize(
    "shape", [(1, 4, 7, 9), (2, 3, 33, 17), (3, 1, 40, 40), (1, 2, 130, 600), (1, 5, 300, 64), (2, 2, 1, 31)]
)
def test_a_chain_computes_what_its_statements_say(shape: tuple[int, int, int, int], threads: int) -> None:
    program = parse(rows_between(*shape))
    arrays = fill(program, seed=sum(shape))
    kernel = compile(program, "host", threads)
    found = kernel(*(arrays[t.name] for t in program.inputs))
    assert isinstance(found, np.ndarray)
    np.testing.assert_array_equal(found, evaluate(program, arrays)["o"])


def test_loops_that_walk_all_operands_are_told_from_rows() -> None:
    found = chain(rows_between(2, 3, 8, 9))
    assert found is not None
    assert found.numbers == (0, 1, 2, 3, 4)
    assert [walk[4] for walk in found.batch] == ["b", "h"]
    assert found.rows == dict.fromkeys(range(5), "i")
    assert found.scratch == ("t", "p")


def test_units_share_heads_and_what_is_between_the_products_is_one_head() -> None:
    text = rows_between(1, 12, 64, 64, 64)
    (outer,) = tiles_over(plan_of(text), collapse(parse(text)))
    assert outer.step == 1 and outer.unit == HOST.units[0].name
    assert "p" in [hold.tensor for hold in outer.holds]


def test_rows_beyond_the_second_cache_go_block_by_block_and_share_layouts() -> None:
    text = rows_between(1, 12, 1024, 1024, 64)
    heads, blocks = tiles_over(plan_of(text), collapse(parse(text)))
    assert heads.step == 1 and heads.unit and not blocks.unit
    assert 2 * blocks.step * 1024 * 4 <= 512 * 1024
    assert {hold.tensor for hold in heads.holds} >= {"k"} and {hold.tensor for hold in blocks.holds} == {"p"}


def test_units_share_rows_where_heads_do_not_come_out_even() -> None:
    text = rows_between(1, 3, 600, 600, 64)
    rows, heads = tiles_over(plan_of(text), collapse(parse(text)))
    assert rows.unit and rows.step < 600 and not heads.unit and heads.step == 1


def test_an_estimate_counts_what_a_chain_saves() -> None:
    chained = collapse(parse(rows_between(1, 12, 512, 512, 64)))
    text = str(chained).replace("temp p", "out p")  # whoever reads p outside gets all of it
    assert estimated_cycles(chained, HOST, 2) < 1.2 * estimated_cycles(parse(text), HOST, 2)


@pytest.mark.parametrize(
    ("old", "new", "walked"),
    [
        ("p[b, h, i, j] * v[b, j, h, d]", "p[b, h, 1, j] * v[b, j, h, d]", ["b", "h"]),
        ("p[b, h, i, j] * v[b, j, h, d]", "p[b, i, h, j] * v[b, j, h, d]", ["b", "i"]),
        ("p[b, h, i, j] * v[b, j, h, d]", "p[5-b, h, i, j] * v[b, j, h, d]", ["h", "i"]),
        ("out o", "out more: f32[6]  out o", []),
    ],
)
def test_only_loops_at_which_all_read_what_was_made_there_are_walked_in_step(
    old: str, new: str, walked: list[str]
) -> None:
    text = rows_between(6, 6, 6, 6, 6).replace(old, new)
    text += "for i<6: more[i] = p[0, 0, 0, i]" if "more" in text else ""
    found = chain(text)
    assert walked == ([] if found is None else [w[4] for w in (*found.batch, found.rows) if w])
    program = parse(text)
    arrays = fill(program, seed=1)
    made = compile(program, "host", 2)(*(arrays[t.name] for t in program.inputs))
    wanted = evaluate(program, arrays)
    for tensor, array in zip(program.outputs, made if isinstance(made, tuple) else (made,), strict=True):
        np.testing.assert_array_equal(array, wanted[tensor.name])


def test_layers_that_share_their_weights_among_rows_are_no_chain() -> None:
    text = """
in x: f32[64, 32]  const w: f32[32, 48]  const u: f32[48, 16]  out y: f32[64, 16]
temp a: f32[64, 48]  temp r: f32[64, 48]
for i<64, j<48, k<32: a[i, j] += x[i, k] * w[k, j]
for i<64, j<48: r[i, j] = max(a[i, j], 0.0)
for i<64, j<16, k<48: y[i, j] += r[i, k] * u[k, j]
"""
    assert chain(text) is None
