"""How much of ONNX there is: the cases of the onnx package, each run and compared at the suite's own tolerances.

    python -m benchmarks.onnx_conformance                      the 1,678 cases of single operators
    python -m benchmarks.onnx_conformance --suite light        models; also simple, pytorch
    python -m benchmarks.onnx_conformance --only 'resize'      cases whose name matches
    python -m benchmarks.onnx_conformance --evaluate           by the meaning of graphs instead of compiled code

A case is passed, refused (with the operator and the reason), wrong, or crashed. Which are refused is written down in
``conformance/expected_refusals.txt``: one more, or one less that is still written down, makes the run fail.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from pathlib import Path

from benchmarks.conformance.cases import SUITES, cases
from benchmarks.conformance.crew import Outcome, run_all

EXPECTED = Path(__file__).parent / "conformance" / "expected_refusals.txt"


def main() -> int:
    options = _options()
    chosen = [case for case in cases(options.suite) if re.search(options.only, case.name)]
    outcomes: list[Outcome] = []

    def done(outcome: Outcome) -> None:
        outcomes.append(outcome)
        if options.json:
            print(json.dumps(outcome), flush=True)
        elif outcome["outcome"] in ("wrong", "crashed") or options.verbose:
            print(_line(outcome), flush=True)

    run_all(chosen, options.evaluate, options.jobs, options.seconds, done)
    outcomes.sort(key=lambda outcome: str(outcome["name"]))
    refused = {str(outcome["name"]) for outcome in outcomes if outcome["outcome"] == "refused"}
    if options.update:
        _write(
            options.suite, {str(o["name"]): f"{o['operator']}: {o['why']}" for o in outcomes if o["name"] in refused}
        )
    expected = {name for suite, name in expected_refusals() if suite == options.suite} & {case.name for case in chosen}
    for name in sorted(refused - expected):
        print(f"newly refused: {name}")
    for name in sorted(expected - refused):
        print(f"no longer refused: {name} must leave {EXPECTED.name}")
    _summary(outcomes)
    count = Counter(str(outcome["outcome"]) for outcome in outcomes)
    print(" ".join(f"{kind}={count[kind]}" for kind in ("passed", "refused", "wrong", "crashed")), f"n={len(outcomes)}")
    return int(bool(count["wrong"] or count["crashed"] or refused != expected))


def _summary(outcomes: list[Outcome]) -> None:
    operators = Counter(str(o["operator"]) for o in outcomes if o["outcome"] == "refused")
    for operator, number in operators.most_common():
        why = next(str(o["why"]) for o in outcomes if o.get("operator") == operator)
        print(f"refused {number:4} {operator}: {why[:120]}")
    where = Counter(str(o["where"]) for o in outcomes if o["outcome"] == "passed")
    print(
        f"of the passed: {where['compiled']} ran compiled, {where['host']} have operators on the host, "
        f"{where['resolved']} were resolved while the graph was made"
    )


def _line(outcome: Outcome) -> str:
    rest = [str(outcome[key]) for key in ("operator", "why") if key in outcome]
    said = outcome.get("trace")
    trace = "".join(f"\n    {line}" for line in said) if isinstance(said, list) else ""
    return f"{outcome['outcome']:8} {outcome['name']}  {': '.join(rest)}{trace}"


def expected_refusals() -> set[tuple[str, str]]:
    """(suite, case) of every line; what stands behind is the reason, for the reader."""
    lines = EXPECTED.read_text().splitlines() if EXPECTED.exists() else []
    words = [line.split(maxsplit=2) for line in lines if line and not line.startswith("#")]
    return {(word[0], word[1]) for word in words}


def _write(suite: str, refused: dict[str, str]) -> None:
    lines = EXPECTED.read_text().splitlines() if EXPECTED.exists() else []
    kept = [line for line in lines if line and not line.startswith("#") and line.split(maxsplit=1)[0] != suite]
    new = [f"{suite} {name} {' '.join(why.split())}" for name, why in refused.items()]
    head = "# Cases that are refused: suite, case, operator and reason. `--update` writes it; it may only get shorter."
    EXPECTED.write_text("\n".join([head, *sorted([*kept, *new])]) + "\n")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", choices=SUITES, default="node")
    parser.add_argument("--only", default="", metavar="REGEX")
    parser.add_argument("--evaluate", action="store_true", help="graphs by their meaning, not compiled")
    parser.add_argument("--json", action="store_true", help="one line for each case")
    parser.add_argument("--verbose", action="store_true", help="say what became of every case")
    parser.add_argument("--update", action="store_true", help="write down what is refused now")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=120.0, help="after which a case counts as crashed")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
