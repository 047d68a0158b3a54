"""Placeholders: types, constants, choices by kind, and repeated lines."""

from __future__ import annotations

import pytest

from dovetail.base.dtypes import DTYPES
from dovetail.targets.template import Scope, compile_template


def fill(text: str, dtypes: str, lanes: int) -> str:
    return compile_template(text).render(Scope(tuple(DTYPES[name] for name in dtypes.split()), lanes))


@pytest.mark.parametrize(
    ("text", "dtypes", "lanes", "filled"),
    [
        ("{T} {t} {v} {s} {L}", "f32", 8, "f32 float <8 x float> v8f32 8"),
        ("{T} {t} {v} {s} {L}", "f64", 1, "f64 double double f64 1"),
        ("{v} {uv} {us} {m} {y}", "bf16 i8", 4, "<4 x i16> <4 x i8> v4i8 <4 x i1> <4 x i8>"),
        ("{i} {is} {A} {W} {B}", "f64", 4, "<4 x i64> v4i64 8 64 32"),
        ("{fadd|add|add} {x|s|u}", "i8", 1, "add s"),
        ("{x|s|u}", "bool", 1, "u"),
        ("{T:1}", "f32", 1, "0x3FF0000000000000"),
        ("{T:0.1}", "f32", 1, "0x3FB99999A0000000"),  # 0.1 rounded to f32, as the double of that value
        ("{T:0x1p-24}", "f64", 2, "splat (double 0x3E70000000000000)"),
        ("{T:low} {T:high} {T:bits-1}", "i8", 1, "-128 127 7"),
        ("{I:0x7fff} {N:-1}", "bf16", 2, "splat (i16 32767) splat (i32 -1)"),
        ("{T:-inf}", "f32", 1, "0xFFF0000000000000"),
        ("{{ {t} }}", "i32", 1, "{ i32 }"),
        ("{each lane}%{l}>%{next} {end}", "i32", 3, "%0>%1 %1>%2 %2>%3 "),
        ("{each half}{h} {2h} {hv} {high};{end}", "i32", 4,
         "2 4 <2 x i32> <2 x i32> <i32 2, i32 3>;1 2 <1 x i32> <1 x i32> <i32 1>;"),
        ("{each four}{l0}-{l3} {four} {right};{end}", "f32", 8,
         "0-3 <4 x i32> <i32 0, i32 1, i32 2, i32 3> <2 x i32> <i32 2, i32 3>;"
         "4-7 <4 x i32> <i32 4, i32 5, i32 6, i32 7> <2 x i32> <i32 6, i32 7>;"),
        ("{each eight}{l0}-{l7} {eight};{end}", "f32", 8,
         "0-7 <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 8, i32 9, i32 10, i32 11, "
         "i32 4, i32 5, i32 6, i32 7, i32 12, i32 13, i32 14, i32 15>;"),
        ("{zip1 low}", "f32", 4, "<4 x i32> <i32 0, i32 4, i32 1, i32 5>"),
        ("{zip1 high}", "f32", 4, "<4 x i32> <i32 2, i32 6, i32 3, i32 7>"),
        ("{zip2 low}", "f32", 8, "<8 x i32> <i32 0, i32 1, i32 8, i32 9, i32 4, i32 5, i32 12, i32 13>"),
        ("{zip2 high}", "f32", 4, "<4 x i32> <i32 2, i32 3, i32 6, i32 7>"),
    ],
)  # fmt: skip
def test_a_placeholder_stands_for_its_text(text: str, dtypes: str, lanes: int, filled: str) -> None:
    assert fill(text, dtypes, lanes) == filled


@pytest.mark.parametrize("text", ["{q}", "{u}", "{U:1}", "{a|b}", "{l}"])
def test_a_placeholder_without_a_meaning_is_named(text: str) -> None:
    with pytest.raises(KeyError):
        fill(text, "f32", 4)


def test_registers_of_no_whole_fours_have_no_shuffles_of_fours() -> None:
    with pytest.raises(KeyError):
        fill("{zip1 low}", "f64", 2)


@pytest.mark.parametrize("text", ["{each lane}", "{end}", "{T:one}"])
def test_a_broken_placeholder_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        fill(text, "f32", 4)
