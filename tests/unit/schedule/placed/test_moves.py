"""Copy inference: which instruction moves a region, what it is told, and what no instruction can move."""

from __future__ import annotations

from pathlib import Path

from dovetail.base.dtypes import DTYPES
from dovetail.schedule.placed.moves import Line, Move, Side, best_move, is_misaligned
from dovetail.targets.load import load_target
from dovetail.targets.model import Target
from tests.unit.schedule.placed.small import machine, variant

I8, I32 = DTYPES["i8"], DTYPES["i32"]
PAD, DRAM = Side("pad", I8), Side("dram", I8)


def filled(*lines: Line, target: Target | None = None) -> Move | None:
    return best_move(lines, PAD, DRAM, target or machine(), True)


def told(move: Move | None) -> tuple[str, dict[str, int], int]:
    """Instruction, distances, and how many lines are loops around it."""
    assert move is not None
    return move.instruction.name, dict(move.strides), len(move.around)


def test_rows_next_to_each_other_are_one_line() -> None:
    """Lines that follow each other without a gap on both sides are taken together."""
    name, _, around = told(filled(Line(0, 3, True, 32, 32), Line(1, 4, True, 8, 8), Line(2, 8, True, 1, 1)))
    assert (name, around) == ("load", 0)
    apart = filled(Line(0, 3, True, 32, 100), Line(1, 4, True, 8, 8), Line(2, 8, True, 1, 1))
    assert told(apart) == ("load", {"lds": 32, "ldx": 100}, 0)


def test_rows_with_a_gap_are_told_how_far_apart_they_are() -> None:
    assert told(filled(Line(0, 6, True, 8, 50), Line(1, 8, True, 1, 1))) == ("load", {"lds": 8, "ldx": 50}, 0)


def test_a_third_dimension_is_a_loop_around() -> None:
    move = filled(Line(0, 2, True, 100, 999), Line(1, 6, True, 8, 50), Line(2, 8, True, 1, 1))
    assert told(move)[2] == 1
    assert move is not None
    assert move.cycles == 2 * (10 + 6)


def test_columns_become_rows_by_the_copy_that_can() -> None:
    assert told(filled(Line(0, 6, True, 8, 1), Line(1, 8, True, 1, 50))) == (
        "gather",
        {"lds": 8, "ldx": 1, "step": 50},
        0,
    )


def test_a_distance_of_zero_repeats_an_element() -> None:
    assert told(filled(Line(0, 6, True, 8, 1), Line(1, 8, True, 1, 0)))[:2] == (
        "gather",
        {"lds": 8, "ldx": 1, "step": 0},
    )


def test_a_copy_takes_no_more_at_a_time_than_its_parameters_allow() -> None:
    """64 rows at most: 70 are a call of 64 and one of 6."""
    move = filled(Line(0, 70, True, 8, 50), Line(1, 8, True, 1, 1))
    assert move is not None
    assert move.chunks == ((0, 64),)
    assert move.cycles == 10 + 64 + 10 + 6
    assert told(filled(Line(0, 64, True, 8, 50), Line(1, 8, True, 1, 1))) == ("load", {"lds": 8, "ldx": 50}, 0)


def test_nothing_moves_what_no_copy_can_be_told() -> None:
    assert best_move((Line(0, 8, True, 2, 1),), Side("weights", I8), DRAM, machine(), True) is None
    assert best_move((Line(0, 8, True, 1, 1),), Side("pad", I32), DRAM, machine(), True) is None
    assert best_move((Line(0, 8, True, 1, 1),), PAD, DRAM, machine(), False) is None


def test_an_exact_copy_does_not_take_a_region_that_may_be_smaller() -> None:
    near, far = Side("weights", I8), PAD
    rows = (Line(0, 4, True, 4, 20), Line(1, 4, True, 1, 1))
    assert told(best_move(rows, near, far, machine(), True)) == ("load_weights", {"lds": 20}, 0)
    assert best_move((Line(0, 4, False, 4, 20), Line(1, 4, True, 1, 1)), near, far, machine(), True) is None


def test_a_dense_copy_does_not_take_rows_that_may_be_shorter(tmp_path: Path) -> None:
    """Its rows would lie as far apart as they are long in that call."""
    dense = variant(
        tmp_path, ('s = "i8 @ pad [lds, 1]", x = "i8 @ dram [ldx, 1]"', 's = "i8 @ pad", x = "i8 @ dram [ldx, 1]"')
    )
    rows = (Line(0, 6, True, 8, 50), Line(1, 8, True, 1, 1))
    assert told(filled(*rows, target=dense))[0] == "load"
    shorter = filled(rows[0], Line(1, 8, False, 1, 1), target=dense)
    assert told(shorter)[0] == "gather" or told(shorter)[2] == 1


def test_a_line_that_depends_on_another_stays_inside_its_loop() -> None:
    blocks, inside = Line(0, 3, True, 8, 8), Line(1, 8, False, 1, 1, within=0)
    move = filled(blocks, inside)
    assert move is not None
    assert move.around == (blocks,)


def test_zeros_are_set_by_the_instruction_that_only_does_that() -> None:
    sums = Side("sums", I32)
    assert told(best_move((Line(0, 4, True, 8, 0), Line(1, 8, True, 1, 0)), sums, None, machine(), True))[0] == "clear"
    assert best_move((Line(0, 4, True, 8, 0),), PAD, None, machine(), True) is None


def test_results_leave_by_copies_in_the_other_direction() -> None:
    move = best_move(
        (Line(0, 4, True, 8, 1), Line(1, 8, True, 1, 10)), Side("sums", I32), Side("dram", I32), machine(), False
    )
    assert told(move) == ("store", {"ldx": 1, "step": 10, "ldc": 8}, 0)


def test_copies_start_where_the_alignment_lets_them(tmp_path: Path) -> None:
    aligned = variant(tmp_path, ("bytes = 4096", "bytes = 4096\nalign = 16"))
    planes = (Line(0, 2, True, 120, 999), Line(1, 6, True, 20, 50), Line(2, 8, True, 1, 1))
    assert filled(*planes, target=aligned) is None
    assert is_misaligned(planes, PAD, DRAM, aligned, True)
    assert filled(Line(0, 2, True, 128, 999), *planes[1:], target=aligned) is not None
    shifted = (Line(0, 8, False, 1, 1, is_shifted=True),)
    assert filled(*shifted) is not None
    assert filled(*shifted, target=aligned) is None


def test_a_block_of_a_layout_is_copied_whole_or_in_rounds_of_its_units() -> None:
    """The layout deals 8 x 8 elements in turn: half a round would come to lie elsewhere."""
    target = load_target("sw26010")
    layout = next(layout for layout in target.layouts if layout.name == "spread")
    near, far = Side("ldm", DTYPES["f64"], layout), Side("dram", DTYPES["f64"])

    def move(first: Line) -> Move | None:
        return best_move((first, Line(1, 32, True, 1, 1, needle=1)), near, far, target, True)

    whole = move(Line(0, 32, True, 32, 64, needle=0))
    assert whole is not None
    assert whole.around == ()
    shifted = move(Line(0, 32, True, 32, 64, needle=0, is_shifted=True))
    assert shifted is not None
    assert [line.number for line in shifted.around] == [0]
