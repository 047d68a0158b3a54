"""``dovetail run``: inputs in, outputs out, checked."""

from pathlib import Path

import numpy as np
import pytest

from dovetail import cli
from dovetail.ir.certificate import Certificate
from dovetail.runtime.kernel import Kernel
from tests.unit.cli.command import MATMUL, ROWS, dovetail

QUICK = ("--threads", "1")


def test_latency_and_outputs_are_shown_and_the_result_is_exact() -> None:
    done = dovetail("run", "--text", MATMUL, "--check", *QUICK)
    assert done.code == 0
    assert "call, median" in done.out
    assert "13 x 11" in done.out
    assert "check: exact: all 143 elements equal the reference" in done.out


def test_arrays_come_from_files_and_go_to_files(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((13, 9), np.float32), rng.standard_normal((9, 11), np.float32)
    np.save(tmp_path / "a.npy", a)
    np.save(tmp_path / "b.npy", b)
    files = ("--input", f"a={tmp_path}/a.npy", "--input", f"b={tmp_path}/b.npy", "--output", f"c={tmp_path}/c.npy")
    done = dovetail("run", "--text", MATMUL, *files, "--check", *QUICK)
    assert done.code == 0
    assert "because of inputs that are not whole numbers" in done.out or "check: exact" in done.out
    np.testing.assert_allclose(np.load(tmp_path / "c.npy"), a @ b, rtol=1e-5, atol=1e-5)


def test_bf16_goes_through_files(tmp_path: Path) -> None:
    text = "in x: bf16[4] out y: bf16[4] for i<4: y[i] = x[i] + x[i]"
    first = ("--output", f"y={tmp_path}/y.npy")
    assert dovetail("run", "--text", text, *first, *QUICK).code == 0
    again = dovetail("run", "--text", text, "--input", f"x={tmp_path}/y.npy", "--check", *QUICK)
    assert again.code == 0
    assert "check: exact" in again.out


def test_constants_are_laid_out_once_and_timed_apart() -> None:
    done = dovetail("run", "--text", MATMUL.replace("in b", "const b"), "--check", *QUICK)
    assert done.code == 0
    assert "lay out constants" in done.out
    assert "check: exact" in done.out


def test_a_size_is_given_or_read_off_an_input(tmp_path: Path) -> None:
    assert "m = 7" in dovetail("run", "--text", ROWS, "--size", "m=7", *QUICK).out
    np.save(tmp_path / "a.npy", np.ones((9, 5), np.int32))
    done = dovetail("run", "--text", ROWS, "--input", f"a={tmp_path}/a.npy", "--check", *QUICK)
    assert done.code == 0
    assert "m = 9" in done.out


def test_a_size_outside_its_range_is_refused() -> None:
    done = dovetail("run", "--text", ROWS, "--size", "m=41", *QUICK)
    assert done.code == 2
    assert done.err == "error: size m = 41 is outside 1..40\n  the program declares size m in 1..40\n"


def test_an_array_of_the_wrong_dtype_or_shape_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.ones((13, 8), np.float32))
    done = dovetail("run", "--text", MATMUL, "--input", f"a={tmp_path}/a.npy", *QUICK)
    assert done.code == 2
    assert "dimension 1 of 'a' is 8, the program wants 9" in done.err
    np.save(tmp_path / "a.npy", np.ones((13, 9)))
    done = dovetail("run", "--text", MATMUL, "--input", f"a={tmp_path}/a.npy", *QUICK)
    assert done.code == 2
    assert "f64" in done.err


def test_a_file_that_is_no_array_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.npy").write_bytes(b"\x80\x04K\x01.")
    done = dovetail("run", "--text", MATMUL, "--input", f"a={tmp_path}/a.npy", *QUICK)
    assert done.code == 2
    assert f"error: input 'a': '{tmp_path}/a.npy' is not a .npy file\n" in done.err


def test_a_wrong_result_is_found_by_the_check(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Kernel.__call__

    def wrong(self: Kernel, *arrays: object, **options: object) -> object:
        result = right(self, *arrays, **options)  # type: ignore[arg-type]
        assert isinstance(result, np.ndarray)
        result[12, 10] += 1
        return result

    monkeypatch.setattr(Kernel, "__call__", wrong)
    monkeypatch.setattr("dovetail.compilation.certify", lambda subject: Certificate("", "", "", ()))
    done = dovetail("run", "--text", MATMUL, "--check", *QUICK)
    assert done.code == 1
    assert "check: WRONG: 1 of 143 elements differ" in done.out
    assert "c[12, 10] is " in done.out
    done = dovetail("verify", "--text", MATMUL, *QUICK)
    assert done.code == 1
    assert "WRONG: 1 of 143 elements differ" in done.out


def test_the_entry_point_is_callable() -> None:
    assert callable(cli.main)
