"""``python -m tests.random_models --count 10000``: as many random models, compiled and compared with the reference."""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from os import cpu_count

from tests.random_models.run import Count, counted

SHARE = 25


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000, help="how many models")
    parser.add_argument("--first", type=int, default=0, help="number of the first; a failure names its own")
    parser.add_argument("--jobs", type=int, default=cpu_count() or 1, help="processes")
    given = parser.parse_args()
    last = given.first + given.count
    shares = [range(start, min(start + SHARE, last)) for start in range(given.first, last, SHARE)]
    total = Count()
    with ProcessPoolExecutor(given.jobs) as pool:
        for done, part in enumerate(pool.map(counted, shares), 1):
            _add(total, part)
            print(f"\r{done * SHARE} models, {len(total.wrong)} wrong", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    for verdict in total.wrong:
        print(f"--first {verdict.seed} --count 1\n{verdict.text}\n  {verdict.problem}\n")
    print(total)
    return 1 if total.wrong else 0


def _add(total: Count, part: Count) -> None:
    total.right += part.right
    total.outputs += part.outputs
    total.exact += part.exact
    total.mistrusted += part.mistrusted
    total.wrong += part.wrong


if __name__ == "__main__":
    sys.exit(main())
