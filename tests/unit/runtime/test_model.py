"""Runs of models, over small native steps written for the purpose."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from dovetail.base.errors import IndexRangeError
from dovetail.runtime.arrays import Parameter
from dovetail.runtime.jit import compile_ir
from dovetail.runtime.model import NativeModel
from dovetail.runtime.model_frame import step_kinds
from dovetail.runtime.model_image import Copy, HostStep, Image, Machine, NativeStep, Place, Space, Tensor

# sum: y[unit] = x[0] + ... + x[63]; spread: y[i] = x[0] + i, by unit i % units; failing: reports an x[0] below 0
STEPS = """
define void @k_sum(i32 %unit, i32 %units, ptr %words) {
entry:
  %x = load ptr, ptr %words
  %y.at = getelementptr ptr, ptr %words, i64 1
  %y = load ptr, ptr %y.at
  br label %each
each:
  %i = phi i64 [ 0, %entry ], [ %next, %each ]
  %sum = phi i64 [ 0, %entry ], [ %new, %each ]
  %at = getelementptr i64, ptr %x, i64 %i
  %one = load i64, ptr %at
  %new = add i64 %sum, %one
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, 64
  br i1 %more, label %each, label %end
end:
  %there = getelementptr i64, ptr %y, i32 %unit
  store i64 %new, ptr %there
  ret void
}

define void @k_spread(i32 %unit, i32 %units, ptr %words) {
entry:
  %x = load ptr, ptr %words
  %y.at = getelementptr ptr, ptr %words, i64 1
  %y = load ptr, ptr %y.at
  %first = load i64, ptr %x
  %mine = zext i32 %unit to i64
  %step = zext i32 %units to i64
  br label %each
each:
  %i = phi i64 [ %mine, %entry ], [ %next, %each ]
  %value = add i64 %first, %i
  %there = getelementptr i64, ptr %y, i64 %i
  store i64 %value, ptr %there
  %next = add i64 %i, %step
  %more = icmp ult i64 %next, 64
  br i1 %more, label %each, label %end
end:
  ret void
}

define void @k_failing(i32 %unit, i32 %units, ptr %words) {
  %x = load ptr, ptr %words
  %value = load i64, ptr %x
  %wrong = icmp slt i64 %value, 0
  br i1 %wrong, label %tell, label %end
tell:
  %status.at = getelementptr ptr, ptr %words, i64 5
  %status = load ptr, ptr %status.at
  store i64 3, ptr %status
  %second = getelementptr i64, ptr %status, i64 1
  store i64 %value, ptr %second
  br label %end
end:
  ret void
}
"""
INPUT, OUTPUT = Place(Space.INPUT, 0), Place(Space.OUTPUT, 0)
FULL = Parameter("y", "i64", (64,), True)
ONE = Parameter("x", "i64", (64,), False)

Whole = npt.NDArray[np.int64]


@pytest.fixture(scope="module")
def code() -> bytes:
    return compile_ir(STEPS)


def arena(at: int) -> Place:
    return Place(Space.ARENA, at)


def step(entry: str, parallel: bool, *arguments: Place, names: tuple[str, ...] = ()) -> NativeStep:
    return NativeStep(entry, entry, parallel, arguments, 0, 0, 0, 64, names)


def image(*steps: NativeStep | HostStep, copies: tuple[Copy, ...] = (), threads: int = 4) -> Image:
    return Image(Machine("", (), ""), threads, (ONE,), (FULL,), steps, copies, 4096)


def numbers(first: int) -> Whole:
    return np.arange(first, first + 64)


def test_units_meet_wherever_one_of_two_neighbours_is_spread() -> None:
    steps = [step("k_sum", parallel, INPUT, OUTPUT) for parallel in (False, False, True, True, False, False)]
    assert step_kinds(steps) == [0, 0, 3, 3, 2, 0]


def test_each_step_sees_all_that_the_steps_before_it_wrote(code: bytes) -> None:
    chain = (
        step("k_spread", True, INPUT, arena(0)),
        step("k_sum", False, arena(0), arena(1024)),
        step("k_spread", True, arena(1024), arena(2048)),
        step("k_sum", True, arena(2048), arena(0)),
        step("k_spread", True, arena(0), OUTPUT),
    )
    model = NativeModel(image(*chain), [code], ())
    for first in range(300):
        x = numbers(first)
        once = 64 * first + 63 * 32
        assert np.array_equal(model(x)[0], numbers(64 * once + 63 * 32))


def test_only_unit_0_runs_a_step_that_is_not_spread(code: bytes) -> None:
    model = NativeModel(image(step("k_spread", True, INPUT, OUTPUT), step("k_sum", False, INPUT, OUTPUT)), [code], ())
    x = numbers(5)
    assert np.array_equal(model(x)[0], [x.sum(), *numbers(5)[1:]])


def test_a_failed_check_names_the_buffer_and_is_forgotten_by_the_next_call(code: bytes) -> None:
    names = ("table", "rows")
    steps = (step("k_failing", False, INPUT, OUTPUT, names=names), step("k_spread", True, INPUT, OUTPUT))
    for threads in (1, 4):
        model = NativeModel(image(*steps, threads=threads), [code], ())
        with pytest.raises(
            IndexRangeError, match="an index into 'table' is out of range: -7 in dimension 2\n  k_failing"
        ):
            model(numbers(-7))
        assert np.array_equal(model(numbers(7))[0], numbers(7))


def test_a_step_on_the_host_works_on_the_arena_and_copies_come_last(code: bytes) -> None:
    operand, result = Tensor(arena(0), "i64", (8, 8)), Tensor(arena(1024), "i64", (64,))
    host = HostStep("backwards", "", (operand,), (result,))
    parts = (step("k_spread", True, INPUT, arena(0)), host)
    model = NativeModel(image(*parts, copies=(Copy(arena(1024), 0),)), [code], (), [lambda a: (a.reshape(64)[::-1],)])
    assert np.array_equal(model(numbers(3))[0], numbers(3)[::-1])
    assert len(model.seconds([numbers(3)], 3)) == 2


def test_a_step_on_the_host_that_gives_another_dtype_is_no_silent_conversion(code: bytes) -> None:
    host = HostStep("wrong", "", (Tensor(INPUT, "i64", (64,)),), (Tensor(OUTPUT, "i64", (64,)),))
    model = NativeModel(image(host), [code], (), [lambda a: (a.astype(np.float64),)])
    with pytest.raises(TypeError, match="Cannot cast"):
        model(numbers(0))


def test_constants_lie_where_they_are(code: bytes) -> None:
    constant = numbers(100)
    model = NativeModel(image(step("k_spread", True, Place(Space.CONSTANT, 0), OUTPUT)), [code], (constant,))
    assert np.array_equal(model(numbers(0))[0], numbers(100))
    constant[0] = 7
    assert np.array_equal(model(numbers(0))[0], numbers(7))
