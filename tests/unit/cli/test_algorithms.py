"""``--relaxed``, ``--rules`` and ``--algorithm``: every verb says which algorithm it took, and checks it."""

from pathlib import Path

from tests.unit.cli.command import MATMUL, dovetail

CONV = """\
in x: f32[1,8,10,10]  const w: f32[16,8,3,3]  out y: f32[1,16,8,8]
for n<1, k<16, p<8, q<8, c<8, r<3, s<3: y[n,k,p,q] += x[n,c,p+r,q+s] * w[k,c,r,s]
"""
LARGE = """\
in x: f32[1,32,30,30]  const w: f32[32,32,3,3]  out y: f32[1,32,28,28]
for n<1, k<32, p<28, q<28, c<32, r<3, s<3: y[n,k,p,q] += x[n,c,p+r,q+s] * w[k,c,r,s]
"""
CHAIN = r"def f(x: f32[64]) -> y = map(\v -> v * 2, map(\v -> exp(v), x))"
STORE = """
[[rule]]
name   = "store"
before = 'map(?f, map(?g, ?x))'
after  = 'let v = map(?g, ?x) in map(?f, v)'
"""
WINOGRAD = ("--relaxed", "--algorithm", "winograd-4x4", "--threads", "1")


def test_a_relaxed_form_is_verified_against_the_program_as_it_is() -> None:
    done = dovetail("verify", "--text", CONV, *WINOGRAD)
    assert done.code == 0
    assert "computed as winograd-4x4 (relaxed), compared with the program as it is" in done.out
    assert "allowed because of winograd-4x4" in done.out
    assert "winograd-4x4 is relaxed: error at most " in done.out
    found = dovetail("verify", "--text", CONV, *WINOGRAD, "--json").json
    algorithm = found["algorithm"]
    assert isinstance(algorithm, dict)
    assert (algorithm["name"], algorithm["kind"]) == ("winograd-4x4", "relaxed")
    assert "eps" in algorithm["error"]


def test_a_relaxed_form_must_be_allowed() -> None:
    done = dovetail("run", "--text", CONV, *WINOGRAD[1:])
    assert done.code == 2
    assert done.err.startswith("error: algorithm 'winograd-4x4' is relaxed\n")
    assert "--relaxed" in done.err


def test_an_algorithm_that_is_not_known_is_refused_with_the_nearest() -> None:
    done = dovetail("compile", "--text", CONV, "--algorithm", "im2cul")
    assert done.code == 2
    assert "did you mean 'im2col'?" in done.err


def test_run_and_bench_say_which_algorithm_they_took() -> None:
    done = dovetail("run", "--text", CONV, "--check", *WINOGRAD)
    assert "algorithm: winograd-4x4 (relaxed; error at most " in done.out
    assert "check: close: " in done.out
    rows = dovetail("bench", "--text", CONV, "--algorithm", "im2col", "--threads", "1", "--json").json["rows"]
    assert isinstance(rows, list)
    assert [row["algorithm"] for row in rows] == ["im2col"]


def test_what_was_looked_at_is_shown_with_its_cost() -> None:
    done = dovetail("compile", "--text", LARGE, "--relaxed", "--threads", "1")
    for name in ("direct", "im2col", "winograd-2x2", "winograd-4x4"):
        assert f"  {name}: " in done.out
    assert "cycles estimated" in done.out


def test_the_object_and_the_plan_of_a_form_belong_together(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    assert dovetail("compile", "--text", CONV, *WINOGRAD, "-o", first, "--emit", "plan,o").code == 0
    plan = ("--plan", tmp_path / "first.plan")
    assert dovetail("compile", "--text", CONV, *plan, *WINOGRAD, "-o", second, "--emit", "o").code == 0
    assert (tmp_path / "second.o").read_bytes() == (tmp_path / "first.o").read_bytes()
    refused = dovetail("compile", "--text", CONV, *plan)
    assert (refused.code, refused.err.splitlines()[0]) == (2, "error: algorithm 'winograd-4x4' is relaxed")


def test_a_simulated_machine_says_which_algorithm_and_keeps_its_plan(tmp_path: Path) -> None:
    text = CONV.replace("f32", "i32")
    one = ("simulate", "--text", text, "--target", "systolic16")
    done = dovetail(*one, "--algorithm", "im2col", "--check", "--save-plan", tmp_path / "plan.json")
    assert "algorithm: im2col (reassociating)" in done.out
    assert "check: exact: all 1024 elements" in done.out
    again = dovetail(*one, "--plan", tmp_path / "plan.json", "--json").json
    assert again["algorithm"]["name"] == "im2col"  # type: ignore[index]


def test_a_rule_of_a_file_is_one_of_the_algorithms(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(STORE)
    mine = ("--rules", tmp_path / "mine.toml", "--threads", "1")
    done = dovetail("verify", "--text", CHAIN, *mine, "--algorithm", "store")
    assert "computed as store (bit-exact)" in done.out
    assert done.code == 0
    chosen = dovetail("compile", "--text", CHAIN, *mine)
    assert "algorithm: direct (bit-exact)\n  direct: " in chosen.out
    assert "  store: " in chosen.out


def test_a_derivation_on_a_processor_is_that_of_the_algorithm() -> None:
    done = dovetail("explain", "--text", LARGE, "--derivation", *WINOGRAD)
    assert done.code == 0
    assert "1. winograd-4x4 (relaxed) at the top" in done.out
    found = dovetail("explain", "--text", LARGE, "--derivation", "--relaxed", "--threads", "1", "--json").json
    costs = found["algorithm"]["costs"]  # type: ignore[index]
    assert [line.partition(":")[0] for line in costs] == ["direct", "im2col", "winograd-2x2", "winograd-4x4"]


def test_a_derivation_says_where_there_is_no_choice() -> None:
    done = dovetail("explain", "--text", MATMUL, "--derivation", "--threads", "1")
    assert done.code == 0
    assert "the program runs as it is: no rule gives it another form" in done.out
    direct = dovetail("explain", "--text", CONV, "--derivation", "--algorithm", "direct", "--threads", "1")
    assert "the program runs as it is" in direct.out


def test_exploration_shows_costs_counts_and_the_derivation() -> None:
    text = r"def f(x: f32[64]) -> y = let t = map(\v -> v * 2, x) in map(\v -> v + 1, t)"
    done = dovetail("explain", "--text", text, "--explore", "4", "--threads", "1")
    assert done.code == 0
    for part in ("cycles estimated", "stopped by ", " iterations with ", " terms estimated", "let-inline (bit-exact)"):
        assert part in done.out
    found = dovetail("explain", "--text", text, "--explore", "4", "--threads", "1", "--json").json
    assert {"cost", "cost_before", "stopped", "nodes", "iterations", "estimates", "derivation"} <= set(found)


def test_exploration_is_a_question_of_its_own() -> None:
    done = dovetail("explain", "--text", CHAIN, "--explore", "1", "--derivation")
    assert done.code == 2
    assert "--explore by itself" in done.err
