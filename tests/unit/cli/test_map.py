"""``dovetail map``: a table for people, JSON for machines."""

from tests.unit.cli.command import MATMUL, dovetail

SUM = "in x: f32[8,16] out y: f32[8] for i<8, j<16: y[i] += x[i,j]"


def test_the_table_names_the_instruction_that_contracts_along_lanes() -> None:
    done = dovetail("map", "--text", MATMUL, "--target", "x86-64-v3")
    assert done.code == 0
    assert "fits of" in done.out.splitlines()[0]
    first = next(line for line in done.out.splitlines() if line.startswith("fma.f32x8"))
    assert "lanes over j" in first
    assert "broadcast a" in first


def test_the_table_says_why_others_do_not_fit() -> None:
    done = dovetail("map", "--text", MATMUL, "--target", "x86-64-v3")
    assert "does not fit" in done.out
    assert "takes i8 for 'a', 'a' is f32" in done.out


def test_all_shows_more_than_the_first_look() -> None:
    short = dovetail("map", "--text", SUM, "--target", "generic")
    long = dovetail("map", "--text", SUM, "--target", "generic", "--all")
    assert "more misfits: --all" in short.out
    assert "more misfits: --all" not in long.out
    assert len(long.out) > len(short.out)


def test_json_holds_every_fit_and_misfit() -> None:
    found = dovetail("map", "--text", MATMUL, "--target", "x86-64-v3", "--json").json
    assert found["target"] == "x86-64-v3"
    fits = found["fits"]
    assert isinstance(fits, list)
    wide = [f for f in fits if f["instruction"] == "fma.f32x8" and f["loops"] == {"l": ["j"]}]
    assert wide
    assert wide[0]["statement"] == 0
    assert found["misfits"]


def test_allowing_identities_finds_more() -> None:
    few = dovetail("map", "--text", SUM, "--target", "x86-64-v3", "--json").json["fits"]
    more = dovetail("map", "--text", SUM, "--target", "x86-64-v3", "--json", "--allow", "identity").json["fits"]
    assert isinstance(few, list)
    assert isinstance(more, list)
    assert len(more) > len(few)
