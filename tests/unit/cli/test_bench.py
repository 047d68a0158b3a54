"""``dovetail bench``: rates and shares, programs and shape files."""

import json
from pathlib import Path

import pytest

from dovetail.cli import bench
from dovetail.cli.shapes import read_shapes
from dovetail.pipeline import program
from tests.unit.cli.command import MATMUL, dovetail

SHAPES = {
    "gemm": [{"m": 8, "n": 16, "k": 4, "transA": True, "transB": False}],
    "convs": [{"w": 6, "h": 6, "c": 2, "k": 4, "fw": 3, "fh": 3, "padw": 1, "padh": 1, "strw": 2, "strh": 2}],
}


@pytest.fixture(autouse=True)
def limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that needs no measuring: 100 GFLOP/s, 10 GB/s."""
    monkeypatch.setattr(bench, "_peak", lambda target, threads: (100e9, 10e9))


def test_a_row_holds_rates_and_shares() -> None:
    found = dovetail("bench", "--text", MATMUL, "--threads", "1", "--json").json
    rows = found["rows"]
    assert isinstance(rows, list)
    (row,) = rows
    operations, moved = 2 * 13 * 9 * 11, 4 * (13 * 9 + 9 * 11 + 13 * 11)
    assert row["flops_per_second"] == pytest.approx(operations / row["seconds"])
    assert row["fma_share"] == pytest.approx(operations / row["seconds"] / 100e9)
    assert row["bandwidth_share"] == pytest.approx(moved / row["seconds"] / 10e9)
    assert row["share"] == pytest.approx(max(row["fma_share"], row["bandwidth_share"]))


def test_every_shape_of_a_file_is_a_row(tmp_path: Path) -> None:
    file = tmp_path / "shapes.json"
    file.write_text(json.dumps(SHAPES))
    done = dovetail("bench", "--shapes", file, "--threads", "1")
    assert done.code == 0
    assert "100 GFLOP/s, 10.0 GB/s measured" in done.out
    assert "gemm m8 n16 k4 tn" in done.out
    assert "conv n1 c2 6x6 k4 3x3/2 p1" in done.out


def test_integer_programs_have_no_share_of_the_float_peak() -> None:
    text = "in x: i32[64] out y: i32[64] for i<64: y[i] = x[i] * 3"
    rows = dovetail("bench", "--text", text, "--threads", "1", "--json").json["rows"]
    assert isinstance(rows, list)
    assert rows[0]["fma_share"] is None


def test_guards_are_written_only_where_a_window_leaves_the_input(tmp_path: Path) -> None:
    file = tmp_path / "shapes.json"
    file.write_text(json.dumps(SHAPES))
    texts = [text for _, text in read_shapes(str(file))]
    assert "where 2*p + r - 1 >= 0, 2*q + s - 1 >= 0:" in texts[1]
    for text in texts:
        program(text)


def test_a_shape_without_a_key_is_a_users_error(tmp_path: Path) -> None:
    file = tmp_path / "shapes.json"
    file.write_text('{"gemm": [{"m": 8, "n": 16}]}')
    done = dovetail("bench", "--shapes", file)
    assert done.code == 2
    assert done.err == f"error: a shape that cannot be read\n  {file}: gemm, entry 0\n  'k' is missing\n"
    file.write_text('{"gemm": [{"m": 8, "n": 16, "k": -1}]}')
    assert "'k' is -1, a whole number from 1 on is wanted" in dovetail("bench", "--shapes", file).err
    file.write_text("[]")
    assert "it has no list 'gemm', 'conv' or 'convs'" in dovetail("bench", "--shapes", file).err
