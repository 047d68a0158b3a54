"""Run-time sizes in the text of a program."""

from dovetail.ir.parse import parse
from dovetail.ir.program import Size


def test_a_size_says_its_range_and_may_say_what_it_usually_is() -> None:
    plain, said = parse("size m in 1..512\nsize n in 2..4096 about 128").sizes
    assert (plain, said) == (Size("m", 1, 512), Size("n", 2, 4096, 128))
    assert (plain.likely, said.likely) == (256, 128)
    assert [str(plain), str(said)] == ["size m in 1..512", "size n in 2..4096 about 128"]


def test_what_is_planned_for_lies_in_the_range() -> None:
    assert Size("n", 8, 64, 3).likely == 8
    assert Size("n", 8, 64, 300).likely == 64


def test_a_tensor_may_be_called_about() -> None:
    program = parse("out about: f32[4]\nsize n in 1..4\nabout[0] = 1.0")
    assert program.sizes == (Size("n", 1, 4),)
    assert parse(str(program)) == program
