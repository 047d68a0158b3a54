"""``dovetail explain``: how a program or a term runs, and by which rules."""

from pathlib import Path

from tests.unit.cli.command import MATMUL, dovetail

LAYER = r"""
def layer(w: f16[64, 64], x: f16[64]) -> y =
  map(\v -> max(v, 0), map(\r -> reduce(add, 0, map(mul, zip(r, x))), w))
"""
SUM = r"def sum(x: f32[8], y: f32[8]) -> z = map(\a b -> a + exp(b), zip(x, y))"
FUSE = """
[[rule]]
name   = "fuse"
before = 'map(?f, map(?g, ?x))'
after  = 'map(?f . ?g, ?x)'
"""
SWAP = """
[[rule]]
name   = "swap"
before = '?x + ?y'
after  = '?y + ?x'
"""


def test_a_program_is_explained_as_it_is_compiled() -> None:
    done = dovetail("explain", "--text", MATMUL)
    assert done.code == 0
    assert "lanes" in done.out
    assert "certificate" in done.out


def test_a_derivation_leads_to_the_instructions_of_a_machine() -> None:
    done = dovetail("explain", "--text", LAYER, "--target", "npu-mv", "--derivation")
    assert done.code == 0
    assert "MVMul64(w, x)" in done.out
    assert "after 3 steps (bit-exact):" in done.out
    assert "y by VVRelu.f32" in done.out


def test_a_program_is_derived_as_the_term_it_raises_to() -> None:
    text = "in w: f16[64,64] in x: f16[64] out y: f32[64] for i<64, k<64: y[i] += w[i,k] * x[k]"
    done = dovetail("explain", "--text", text, "--target", "npu-mv", "--derivation", "--json")
    assert [step["rule"] for step in done.json["steps"]] == ["MVMul64.f16.f16"]  # type: ignore[attr-defined]


def test_rules_of_a_file_come_first(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(FUSE)
    done = dovetail("explain", "--text", LAYER, "--derivation", "--rules", tmp_path / "mine.toml")
    assert "1. fuse (bit-exact) at the top" in done.out
    assert r"map(\v -> max(reduce(add, 0, map(mul, zip(v, x))), 0), w)" in done.out


def test_rules_that_loop_for_ever_are_stopped_and_named(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(SWAP)
    done = dovetail("explain", "--text", SUM, "--derivation", "--rules", tmp_path / "mine.toml")
    assert done.code == 2
    assert "was stopped by the limit of 1000 steps" in done.err
    assert "rule 'swap' kept firing" in done.err


def test_relaxed_rules_need_to_be_allowed(tmp_path: Path) -> None:
    relaxed = 'kind = "relaxed"\nerror = "2 * eps * the value"\n'
    (tmp_path / "mine.toml").write_text(FUSE + relaxed)
    refused = dovetail("explain", "--text", LAYER, "--derivation", "--rules", tmp_path / "mine.toml")
    assert "1. fuse" not in refused.out
    assert "fuse is relaxed: --relaxed" in refused.out
    allowed = dovetail("explain", "--text", LAYER, "--derivation", "--relaxed", "--rules", tmp_path / "mine.toml")
    assert "1. fuse (relaxed) at the top" in allowed.out


def test_an_ill_typed_term_is_a_user_error() -> None:
    done = dovetail("explain", "--text", "def f(x: f32[8]) -> y = map(transpose, x)")
    assert done.code == 2
    assert "f32" in done.err
