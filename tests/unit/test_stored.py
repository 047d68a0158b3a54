"""What is kept of a compilation reads back as it was, or not at all."""

from dovetail.base.dtypes import DTYPES
from dovetail.codegen.arena import Arena
from dovetail.ir.certificate import Certificate, Check
from dovetail.ir.index import constant, variable
from dovetail.ir.nest import Buffer
from dovetail.stored import Stored, from_bytes, to_bytes

SHAPE = (variable("n") // 4 + 1, (variable("m") * 2 + 3) % 8 + 1, constant(16))
BUFFER = Buffer("p1", "memory", DTYPES["f32"], SHAPE, tensor="w", strides=(constant(99), constant(16), constant(1)))
CHECK = Check("a claim", "isl", "detail", True, 0.5)
KERNEL = Stored(
    "k_1", Arena((BUFFER,)), Arena(()), ("a", "b"), b"\x7fELF\n\x00\n", Certificate("p", "t", "l", (CHECK,))
)


def test_code_memory_and_certificate_read_back() -> None:
    found = from_bytes(to_bytes(KERNEL))
    assert found is not None
    assert (found.entry, found.shared, found.private, found.buffers) == ("k_1", Arena((BUFFER,)), Arena(()), ("a", "b"))
    assert found.code == KERNEL.code
    assert found.certificate.checks == (CHECK,)


def test_a_certificate_says_that_it_was_kept() -> None:
    found = from_bytes(to_bytes(KERNEL))
    assert found is not None
    assert found.certificate.kept
    assert str(found.certificate).startswith("from the cache: checked when this code was compiled\n")


def test_memory_is_as_large_as_before() -> None:
    found = from_bytes(to_bytes(KERNEL))
    assert found is not None
    sizes = {"n": 9, "m": 2}
    assert found.shared.bytes(sizes) == KERNEL.shared.bytes(sizes) > 0


def test_anything_else_is_nothing() -> None:
    good = to_bytes(KERNEL)
    cut = good[: good.index(b"\n")]
    strange = good.replace(b'"//"', b'"**"')
    other = good.replace(b'"shape"', b'"shake"')
    for data in (b"", b"{}\ncode", b"[]\ncode", b"no json\ncode", cut, cut + b"\n", strange, other, b"[" * 100_000):
        assert from_bytes(data) is None
