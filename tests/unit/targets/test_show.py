"""A target as text: what is there can be read off it."""

from __future__ import annotations

from pathlib import Path

from dovetail.targets.load import load_target
from dovetail.targets.show import byte_count, list_targets, show_target

MACHINES = Path(__file__).parents[2] / "targets"


def test_all_shipped_targets_and_the_host_are_listed_with_a_line() -> None:
    listed = dict(list_targets())
    assert {"host", "generic", "x86-64-v3", "x86-64-v4", "znver4", "npu-mv", "sw26010", "systolic16"} <= set(listed)
    assert "template" not in listed
    assert all(listed.values())


def test_an_accelerator_is_shown_whole() -> None:
    assert show_target(load_target(MACHINES / "toy16.toml")) == (Path(__file__).parent / "toy16.txt").read_text()


def test_layouts_are_shown_as_maps() -> None:
    text = show_target(load_target(MACHINES / "hopper.toml"))
    assert "swizzle128   [r, k] -> [r, k // 8, k % 8], dimension 1 ^= r % 8" in text
    assert "227 KiB per sm" in text and "code      none" in text


def test_one_instruction_is_shown_in_full() -> None:
    text = show_target(load_target("x86-64-v3"), "fma.f32x8")
    assert text.startswith("fma.f32x8  x86-64-v3.toml: [[instruction]] #")
    assert "'fma'\n  inout acc: f32[8]\n" in text
    assert "cycles 0.5, latency 4, needs fma" in text and "@llvm.fma.v8f32" in text


def test_a_family_shows_all_its_members() -> None:
    assert show_target(load_target("x86-64-v3"), "fma").count("cycles 0.5") == 5


def test_bytes_are_whole_units_or_bytes() -> None:
    assert [byte_count(n) for n in (512, 1024, 1536, 1 << 21, 3 << 30)] == [
        "512 bytes", "1 KiB", "1536 bytes", "2 MiB", "3 GiB",
    ]  # fmt: skip
