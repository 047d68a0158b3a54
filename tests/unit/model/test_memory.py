from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dovetail.model.memory import ALIGNMENT, Lifetime, lay_out

lifetimes = st.builds(
    lambda length, first, span: Lifetime(length, first, first + span),
    st.integers(0, 5000),
    st.integers(0, 30),
    st.integers(0, 8),
)


def test_what_is_dead_gives_its_bytes_to_what_comes() -> None:
    offsets, total = lay_out([Lifetime(64, 0, 1), Lifetime(64, 1, 2), Lifetime(64, 2, 3)])
    assert offsets == (0, 64, 0)
    assert total == 128


def test_the_smallest_gap_that_holds_a_buffer_is_taken() -> None:
    pillars = [Lifetime(640, 0, 9), Lifetime(512, 0, 0), Lifetime(448, 0, 9), Lifetime(256, 0, 0), Lifetime(192, 0, 9)]
    offsets, total = lay_out([*pillars, Lifetime(128, 1, 9)])
    assert offsets[-1] == offsets[3], "the gap of 256 bytes, not the one of 512"
    assert total == sum(one.bytes for one in pillars)


@given(st.lists(lifetimes, max_size=40))
def test_no_two_buffers_that_live_at_the_same_time_share_a_byte(buffers: list[Lifetime]) -> None:
    offsets, total = lay_out(buffers)
    for number, (mine, at) in enumerate(zip(buffers, offsets, strict=True)):
        assert at % ALIGNMENT == 0
        assert 0 <= at <= max(0, total - mine.bytes)
        for other, there in zip(buffers[:number], offsets[:number], strict=True):
            if mine.bytes and other.bytes and mine.meets(other):
                assert at + mine.bytes <= there or there + other.bytes <= at


@given(st.lists(lifetimes, max_size=20))
def test_an_arena_is_at_least_what_lives_at_once_and_at_most_everything(buffers: list[Lifetime]) -> None:
    _, total = lay_out(buffers)
    alive = [sum(b.bytes for b in buffers if b.first <= step <= b.last) for step in range(40)]
    assert max(alive) <= total
    assert total <= sum(-(-b.bytes // ALIGNMENT) * ALIGNMENT for b in buffers)


@given(st.lists(lifetimes, max_size=20))
def test_the_same_buffers_always_lie_in_the_same_way(buffers: list[Lifetime]) -> None:
    assert lay_out(buffers) == lay_out(list(buffers))
