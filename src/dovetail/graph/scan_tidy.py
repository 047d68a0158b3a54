"""Every ``scan`` of a graph, wherever it comes from, brought into one form before it is compiled:

    what no state decides                computed ahead, for all steps at once
    products of one state                one product, whose weights are joined ahead of time
    products that no step needs          computed behind the steps, for all of them at once
    states and results nobody needs      left out

What is left in a step is, for most cells, one product of the state and what is computed of each of its elements.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from dovetail.graph.record import Passed, Record, counted
from dovetail.graph.scan_drop import dropped
from dovetail.graph.scan_form import Scan, exchange, opened
from dovetail.graph.scan_hoist import hoisted
from dovetail.graph.scan_products import merged_products, plain_products, sums_ahead
from dovetail.graph.scan_sink import sunk
from dovetail.graph.scan_turn import turned
from dovetail.graph.sheet import Sheet
from dovetail.ir.graph.bound import BoundGraph
from dovetail.ir.graph.graph import SCAN
from dovetail.ir.graph.verify import Operators


@dataclass(frozen=True, slots=True)
class ScanTidy:
    """Bodies of known length; sums may be rounded in another order."""

    name: str = "scan"

    def __call__(self, bound: BoundGraph, operators: Operators) -> Passed:
        scans = [node.results[0] for node in bound.graph.nodes if node.op == SCAN]
        if not scans:
            return bound, ()
        sheet = Sheet(bound, operators)
        records = [record for key in scans if (record := self._tidy(sheet, key)) is not None]
        return (sheet.finish(), tuple(records)) if records else (bound, ())

    def _tidy(self, sheet: Sheet, key: str) -> Record | None:
        node = sheet.nodes.get(key)
        scan = None if node is None else opened(node, sheet.types)
        if node is None or scan is None:
            return None
        done: list[str] = []
        changed = plain_products(sheet, scan)
        changed = sums_ahead(sheet, changed)
        changed, products = merged_products(sheet, changed)
        if changed is not scan:
            changed = exchange(sheet, scan, changed)
        changed, turns = turned(sheet, changed)
        if turns:
            done.append(f"{counted(turns, 'state')} carried as what a product is made of")
        changed, ahead = hoisted(sheet, changed)
        if ahead:
            counts = Counter(ahead)
            done.append("hoisted " + ", ".join(f"{n} {op}" if n > 1 else op for op, n in counts.items()))
        changed, behind = sunk(sheet, changed)
        if behind:
            done.append(f"behind the steps {', '.join(behind)}")
        if products:
            done.append(f"merged {counted(products, 'product')} of the same value")
        changed, gone = dropped(sheet, changed)
        if gone:
            done.append(f"{counted(gone, 'state or result')} that nothing needs left out")
        if changed is scan:
            return None
        return Record(self.name, f"{_described(changed)}: {'; '.join(done) or 'products in one form'}", "")


def _described(scan: Scan) -> str:
    moving = scan.moving()
    products = sum(node.op == "matmul" and node.results[0] in moving for node in scan.nodes)
    return (
        f"{scan.steps} steps of {counted(len(scan.nodes), 'node')}, {counted(products, 'product')} of a state in each"
    )
