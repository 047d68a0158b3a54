"""A process that runs cases: one line of JSON in for each, one out. It may die: whoever started it counts that."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from benchmarks.conformance.cases import Case, examples
from benchmarks.conformance.compare import difference
from dovetail.base.errors import DovetailError, UnsupportedError
from dovetail.frontends.onnx.file import read
from dovetail.ir.graph.bound import BoundGraph
from dovetail.model.build import compile_graph
from dovetail.model.onnx_session import Session, reference
from dovetail.model.onnx_stages import Compile, RunGraph


def main() -> None:
    """``--evaluate``: graphs are run by their meaning, not compiled."""
    compile_: Compile = reference if "--evaluate" in sys.argv else compiled
    for line in sys.stdin:
        asked = json.loads(line)
        folder = Path(asked["folder"]) if asked["folder"] else None
        case = Case(asked["name"], Path(asked["model"]), folder, asked["rtol"], asked["atol"])
        print(json.dumps(run(case, compile_)), flush=True)


def run(case: Case, compile_: Compile) -> dict[str, object]:
    """What became of a case: passed, refused, wrong; an error that is not one of ours ends the process."""
    try:
        model = read(case.model)
        session = Session(model, compile_)
        wrong = None
        for example in examples(case, model):
            names = [value.name for value in model.graph.inputs]
            if len(example.inputs) < len(names):
                names = [value.name for value in session.inputs]
            made = session.run(dict(zip(names, example.inputs, strict=False)))
            pairs = zip(session.outputs, example.outputs, strict=False)
            found = (difference(made[name], wanted, case.rtol, case.atol) for name, wanted in pairs)
            wrong = wrong or next((what for what in found if what is not None), None)
    except DovetailError as refusal:
        operator = refusal.operator if isinstance(refusal, UnsupportedError) else type(refusal).__name__
        reason = refusal.reason if isinstance(refusal, UnsupportedError) else refusal.what
        return {"name": case.name, "outcome": "refused", "operator": operator, "why": reason}
    report = session.report
    where = "host" if report.host else "compiled" if report.compiled else "resolved"
    operators = sorted({name for name, _ in report.host})
    if wrong is not None:
        return {"name": case.name, "outcome": "wrong", "why": wrong, "where": where, "host": operators}
    return {"name": case.name, "outcome": "passed", "where": where, "host": operators}


def compiled(bound: BoundGraph) -> RunGraph:
    """In this process: a case is small, and other cases keep the other cores busy."""
    return compile_graph(bound, jobs=1)


if __name__ == "__main__":
    main()
