"""The package's front door: its version, its public names, and what importing it costs."""

import re
import subprocess
import sys
from importlib import metadata
from importlib.util import find_spec

import pytest

import dovetail

IMPORT_SECONDS = 0.5
HEAVY = ("egglog", "islpy", "llvmlite", "ml_dtypes", "numpy", "rich", "typer")
PROBE = """
import sys, time
start = time.perf_counter()
import dovetail
print(time.perf_counter() - start)
print(*sorted(name for name in sys.modules if "." not in name or name.startswith("dovetail.")))
"""
COMPILES = """
import sys
import dovetail
kernel = dovetail.compile(dovetail.program("in x: f32[8] out y: f32[8] for i<8: y[i] = x[i] * 2"))
print(*sorted(name for name in sys.modules if name.startswith(("dovetail.", "egglog"))))
"""
TERMS = (
    "dovetail.frontends",
    "dovetail.rewrite",
    "dovetail.ir.functional.infer",
    "dovetail.ir.functional.text",
    "egglog",
)
"""What only terms and rules need."""


def test_the_installed_version_is_the_one_in_the_source() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", dovetail.__version__)
    assert metadata.version("dovetail") == dovetail.__version__


def test_importing_dovetail_is_quick() -> None:
    assert min(import_in_fresh_process()[0] for _ in range(3)) <= IMPORT_SECONDS


def test_importing_dovetail_loads_no_heavy_package() -> None:
    _, modules = import_in_fresh_process()
    assert "dovetail" in modules
    assert modules.isdisjoint(HEAVY)
    assert not [name for name in modules if name.startswith("dovetail.")]


def test_a_program_is_compiled_without_the_modules_of_terms_and_rules() -> None:
    run = subprocess.run([sys.executable, "-c", COMPILES], capture_output=True, text=True, check=True)
    assert not [name for name in run.stdout.split() if name.startswith(TERMS)]


def test_public_names_are_few_and_listed() -> None:
    assert dir(dovetail) == sorted(dovetail.__all__)
    assert len(dovetail.__all__) <= 15


@pytest.mark.skipif(find_spec("dovetail.pipeline") is None, reason="the pipeline is not in yet")
@pytest.mark.parametrize("name", dovetail.__all__)
def test_every_public_name_loads(name: str) -> None:
    assert getattr(dovetail, name) is not None


def test_an_unknown_name_is_refused_with_the_names_that_exist() -> None:
    with pytest.raises(AttributeError, match=r"no attribute 'compyle'.*compile"):
        getattr(dovetail, "compyle")  # noqa: B009  (a plain access would not type-check)


def import_in_fresh_process() -> tuple[float, set[str]]:
    """Import dovetail in a new interpreter: the seconds it took, and the modules then loaded."""
    run = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, check=True)
    seconds, modules = run.stdout.splitlines()
    return float(seconds), set(modules.split())
