from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from dovetail.base.errors import DovetailError, LimitError, ModelError, TargetError
from dovetail.base.limits import ModelLimits
from dovetail.model import container
from dovetail.model.artefact import load
from dovetail.model.build import compile_graph
from dovetail.model.compiled import CompiledModel
from tests.unit.model.graphs import mlp, same, wanted, whole_numbers

Change = Callable[[dict[str, Any]], object]
ALONE = """
import sys
class Refused:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("onnx", "torch", "islpy"):
            raise ImportError(name)
sys.meta_path.insert(0, Refused())
import numpy as np
from dovetail.model.artefact import load
print(json.dumps(load(sys.argv[1])(np.load(sys.argv[2]))[0].tolist()) if (json := __import__("json")) else "")
"""


@pytest.fixture(scope="module")
def model() -> CompiledModel:
    return compile_graph(mlp(), threads=2, cache=False)


@pytest.fixture
def path(model: CompiledModel, tmp_path: Path) -> Path:
    model.save(tmp_path / "mlp.dovetail")
    return tmp_path / "mlp.dovetail"


def test_what_is_loaded_computes_the_same_and_says_the_same(model: CompiledModel, path: Path) -> None:
    found, x = load(path), whole_numbers(1, 6, 24)
    assert same(found(x), wanted(mlp(), x))
    assert found.report == model.report
    assert found.inputs == model.inputs
    assert found.finished.image == model.finished.image


def test_the_same_model_gives_the_same_file(model: CompiledModel, path: Path, tmp_path: Path) -> None:
    model.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == path.read_bytes()


def test_constants_are_used_where_the_file_is_mapped(path: Path) -> None:
    found = load(path)
    assert all(not array.flags.owndata and not array.flags.writeable for array in found.finished.constants)
    assert all(array.ctypes.data % 64 == 0 for array in found.finished.constants)


def test_a_process_without_the_packages_that_read_models_runs_it(path: Path, tmp_path: Path) -> None:
    x = whole_numbers(2, 6, 24)
    np.save(tmp_path / "x.npy", x)
    command = [sys.executable, "-c", ALONE, str(path), str(tmp_path / "x.npy")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert np.array_equal(json.loads(done.stdout), wanted(mlp(), x)[0])


def test_every_changed_byte_is_noticed(path: Path) -> None:
    whole = path.read_bytes()
    for place in {*range(0, 64, 3), *range(64, len(whole), 997), len(whole) - 1}:
        damaged = bytearray(whole)
        damaged[place] ^= 0x40
        path.write_bytes(damaged)
        with pytest.raises(ModelError):
            load(path)


@pytest.mark.parametrize("length", [0, 1, 63, 64, 100, 5000])
def test_a_file_that_ends_early_is_refused(path: Path, length: int) -> None:
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(ModelError, match="no compiled model, or a damaged one"):
        load(path)


def test_folders_pipes_and_what_is_not_there_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for missing in (tmp_path, tmp_path / "nothing\n", tmp_path / "pipe", Path("/dev/zero"), tmp_path / "nul\0"):
        with pytest.raises(ModelError):
            load(missing)


def rewritten(path: Path, change: Change) -> None:
    """The file with other JSON, and a digest that fits it."""
    data = path.read_bytes()
    length = int.from_bytes(data[48:56], "little")
    head = json.loads(data[64 : 64 + length])
    change(head)
    text = json.dumps(head).encode()
    blocks = data[64 + -(-length // 64) * 64 :]
    body = text + bytes(-len(text) % 64) + blocks
    lengths = len(text).to_bytes(8, "little") + (64 + len(body)).to_bytes(8, "little")
    whole = bytearray(data[:16] + bytes(32) + lengths + body)
    whole[16:48] = container._digest(memoryview(whole))
    path.write_bytes(whole)


LIES: dict[str, Change] = {
    "a step that is no step": lambda head: head["image"]["steps"].append(3),
    "an argument outside the arena": lambda head: head["image"]["steps"][0]["arguments"].append(["arena", 1 << 40]),
    "a constant that is not there": lambda head: head["image"]["steps"][0]["arguments"].append(["constant", 99]),
    "a place that is none": lambda head: head["image"]["steps"][0]["arguments"].append(["heap", 0]),
    "negative bytes": lambda head: head["image"].update(arena_bytes=-1),
    "too many threads": lambda head: head["image"].update(threads=10**6),
    "an entry with other characters": lambda head: head["image"]["steps"][0].update(entry="system"),
    "an object outside the file": lambda head: head["objects"].append([0, 1 << 60]),
    "a constant longer than its block": lambda head: head["constants"][0].update(shape=[1 << 20, 1 << 20]),
    "a constant of no dtype": lambda head: head["constants"][0].update(dtype="f99"),
    "a constant that does not begin on a line": lambda head: head["constants"][0].update(data_offsets=[1, 2]),
    "work memory outside the arena": lambda head: head["image"]["steps"][0].update(memory=[0, 0, 1 << 30, 64]),
    "no image": lambda head: head.pop("image"),
    "a copy of an output that is not there": lambda head: head["image"]["copies"].append([["input", 0], 7]),
}


@pytest.mark.parametrize("lie", LIES)
def test_lies_in_the_description_are_found(path: Path, lie: str) -> None:
    rewritten(path, LIES[lie])
    with pytest.raises(ModelError, match="no compiled model, or a damaged one"):
        load(path)


def places(value: object, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in JSON."""
    yield path
    rows = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in rows:
        yield from places(inner, (*path, key))


def test_a_description_changed_at_any_place_is_refused_or_still_a_model(path: Path) -> None:
    whole, random = path.read_bytes(), Random(7)
    for _ in range(300):
        path.write_bytes(whole)

        def change(head: dict[str, Any]) -> None:
            *way, last = random.choice([p for p in places(head) if p])
            inside: Any = head
            for key in way:
                inside = inside[key]
            inside[last] = random.choice(
                [None, -1, 0, 1, 1 << 31, 1 << 62, 1.5, "", "k_0123456789abcdef", [], {}, True]
            )

        rewritten(path, change)
        with suppress(DovetailError):
            load(path)


def test_another_format_and_another_machine_are_named(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[14] = 9
    other = path.with_name("other")
    other.write_bytes(data)
    with pytest.raises(ModelError, match="format 9"):
        load(other)
    rewritten(path, lambda head: head["image"]["machine"][1].append("flying"))
    with pytest.raises(TargetError, match="it lacks flying"):
        load(path)
    rewritten(path, lambda head: head["image"]["machine"].__setitem__(0, "z80-none"))
    with pytest.raises(TargetError, match="it lacks z80"):
        load(path)


def test_more_memory_than_allowed_is_refused_before_it_is_taken(path: Path) -> None:
    with pytest.raises(LimitError, match="the limit is 100"):
        load(path, ModelLimits(memory_bytes=100))
