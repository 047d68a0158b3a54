from __future__ import annotations

from dovetail.ir.parse import parse
from dovetail.model.parts import from_bytes, part_of, to_bytes
from dovetail.targets.load import load_target

MADE = parse("""
in a0: f32[16, 32]  const a1: f32[32, 8]  temp t0: f32[32, 8]  out a2: f32[16, 8]
for i<32, j<8: t0[i, j] = a1[i, j] * a1[i, j]
for i<16, j<8, k<32: a2[i, j] += a0[i, k] * t0[k, j]
""")


def test_a_part_survives_being_written_and_read() -> None:
    part = part_of(MADE, load_target("host"), 2, None)
    assert part.ahead is not None
    assert from_bytes(to_bytes(part)) == part


def test_anything_else_is_no_part() -> None:
    whole = to_bytes(part_of(MADE, load_target("host"), 1, None))
    rest = whole.partition(b"\n")[2]
    for data in (
        b"",
        b"\n",
        b"{}\n",
        b"[]\nx",
        whole[:-1],
        whole + b"x",
        b'{"bytes": [1]}\nx',
        b'{"bytes": []}\n' + rest,
    ):
        assert from_bytes(data) is None


def test_arguments_and_checks_are_what_the_program_says() -> None:
    part = part_of(MADE, load_target("host"), 1, None)
    assert [p.writable for p in part.arguments] == [p.name == "a2" for p in part.arguments]
    assert part.buffers == (), "no index is read from a tensor"
    rows = parse("in a0: f32[9, 4]  in a1: i64[3]  out a2: f32[3, 4]\nfor i<3, j<4: a2[i, j] = a0[a1[i], j]")
    assert "a0" in part_of(rows, load_target("host"), 1, None).buffers
    assert part.arguments[0].shape == (16, 32)
