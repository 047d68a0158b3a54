import json
from pathlib import Path

import pytest

from benchmarks.shapes import SHAPES, Conv, Gemm, Matmul, ShapeFileError, read_shapes


def written(path: Path, document: object) -> Path:
    file = path / "shapes.json"
    file.write_text(json.dumps(document))
    return file


def test_the_deepbench_file_holds_its_products_and_convolutions() -> None:
    shapes = read_shapes(SHAPES / "deepbench.json")
    assert (len(shapes.gemms), len(shapes.convs)) == (84, 107)
    assert shapes.gemms[0] == Gemm(5124, 700, 2048)
    first = shapes.convs[0]
    assert (first.x_shape, first.w_shape, first.y_shape) == ((1, 1, 161, 700), (32, 1, 5, 20), (1, 32, 79, 341))


def test_the_resnet_file_agrees_with_the_output_sizes_and_costs_it_states() -> None:
    path = SHAPES / "resnet50_convs.json"
    shapes = read_shapes(path).convs
    stated = json.loads(path.read_text())["convs"]
    assert [(c.out, c.flops / 1e9) for c in shapes] == [((s["oh"], s["ow"]), s["gflop_per_image"]) for s in stated]


def test_all_benchdnn_convolutions_are_read_and_cost_what_the_file_states() -> None:
    path = SHAPES / "benchdnn_convs.json"
    convs = read_shapes(path).convs
    assert len(convs) == 3167
    assert [conv.flops for conv in convs] == [entry["flop_mb1"] for entry in json.loads(path.read_text())["conv"]]


def test_benchdnn_matmuls_of_unequal_rank_are_skipped_with_a_reason() -> None:
    shapes = read_shapes(SHAPES / "benchdnn_matmul_rnn.json")
    assert len(shapes.matmuls) == 397
    assert "100x64:4x64x32: operands of rank 2 and 3" in shapes.skipped
    assert len(shapes.matmuls) + len(shapes.skipped) == 428


def test_a_broadcast_matmul_takes_the_batch_of_the_other_operand() -> None:
    assert Matmul((1, 3, 4), (5, 4, 6)).out == (5, 3, 6)


def test_benchdnn_defaults_fill_in_what_is_missing(tmp_path: Path) -> None:
    entry = {"nd": 2, "ic": 4, "oc": 6, "ih": 7, "iw": 9, "kh": 3, "kw": 3, "oh": 7, "ow": 9}
    conv = read_shapes(written(tmp_path, {"conv": [entry]})).convs[0]
    assert conv == Conv(1, 4, 6, (7, 9), (3, 3), (7, 9), (1, 1), (1, 1), (1, 1))


def test_benchdnn_counts_extra_dilation_where_we_count_the_step(tmp_path: Path) -> None:
    entry = {"nd": 1, "ic": 1, "oc": 1, "iw": 9, "kw": 3, "dw": 1, "pw": 0, "sw": 2}
    conv = read_shapes(written(tmp_path, {"conv": [entry]})).convs[0]
    assert (conv.dilation, conv.out) == ((2,), (3,))


def test_padding_after_an_axis_follows_from_the_output_size() -> None:
    conv = Conv(1, 1, 1, (5,), (3,), (5,), (1,), (0,), (1,))
    assert conv.pad_end == (2,)
    assert not conv.symmetric


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([], "expected an object with lists of shapes, found list"),
        ({}, "no list 'gemm', 'conv', 'convs' or 'matmul' with entries in it"),
        ({"gemm": 3}, "'gemm' should be a list, found int"),
        ({"gemm": [7]}, "gemm[0]: expected an object, found 7"),
        ({"gemm": [{"m": 1, "n": 2, "k": 3}, {"m": 1, "n": 2}]}, "gemm[1]: key 'k' is missing"),
        ({"gemm": [{"m": 0, "n": 2, "k": 3}]}, "'m' should be an integer of at least 1, found 0"),
        ({"gemm": [{"m": True, "n": 2, "k": 3}]}, "'m' should be an integer of at least 1, found True"),
        ({"gemm": [{"m": 1, "n": 2, "k": 3, "transA": 1}]}, "'transA' should be true or false, found 1"),
        ({"convs": [{"w": 1, "h": 1, "c": 1, "k": 1, "fh": 1, "f_w": 1}]}, "key 'fw' is missing; did you mean 'f_w'?"),
        ({"matmul": ["2x3"]}, "expected a text like '8x16:16x32', found '2x3'"),
        ({"matmul": ["2xa:3x4"]}, "the extents of '2xa:3x4' are not integers"),
        ({"matmul": ["2x3:4x5"]}, "the operands of '2x3:4x5' do not multiply"),
        ({"conv": [{"nd": 1, "ic": 3, "oc": 4, "iw": 5, "kw": 1, "g": 2}]}, "2 groups do not divide 3 input"),
        ({"conv": [{"nd": 1, "ic": 1, "oc": 1, "iw": 2, "kw": 5, "pw": 0}]}, "should be an integer of at least 1"),
    ],
)
def test_a_bad_file_is_refused_with_the_place_and_the_reason(tmp_path: Path, document: object, message: str) -> None:
    with pytest.raises(ShapeFileError) as caught:
        read_shapes(written(tmp_path, document))
    assert message in str(caught.value)
    assert "shapes.json" in str(caught.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ShapeFileError, match=r"gone\.json: cannot be read"):
        read_shapes(tmp_path / "gone.json")


def test_text_that_is_not_json_is_refused_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "shapes.json"
    file.write_text('{\n"gemm": [}')
    with pytest.raises(ShapeFileError, match=r"shapes\.json:2: not JSON"):
        read_shapes(file)
