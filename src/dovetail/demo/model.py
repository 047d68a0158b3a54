"""The demo's model: ResNet-50 made on the spot, compiled to one native function, beside ONNX Runtime."""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import onnxruntime

from dovetail.cli.model_bench import ROUNDS, in_turns
from dovetail.cli.model_run import ready
from dovetail.cli.screen import heading, milliseconds, note, say, show_table
from dovetail.demo.resnet import write_resnet50
from dovetail.runtime.threads import thread_count
from dovetail.targets.load import load_target

TOLERANCE = 1e-4
"""Of the largest score: two systems sum 53 layers in different orders."""


def main() -> int:
    """Makes the model, compiles it, compares it; 0 when both systems agree."""
    threads = thread_count(None, load_target("host"))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "resnet50.onnx"
        write_resnet50(file)
        heading("ResNet-50, made on the spot, one image")
        begun = time.perf_counter()
        model, feeds = ready(str(file), "host", threads, None, None, seed=0)
        compiled = time.perf_counter() - begun
        ours = np.asarray(model.run(feeds)["scores"], np.float64)
        session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
        theirs = np.asarray(session.run(["scores"], feeds)[0], np.float64)
        del session
        error = float(np.abs(ours - theirs).max() / np.abs(theirs).max())
        say(model.report)
        say()
        times = in_turns(["dovetail", "onnxruntime"], str(file), threads, feeds)
    rows = [(name, milliseconds(statistics.median(t)), milliseconds(min(t))) for name, t in times.items()]
    show_table(("system", "median", "fastest"), rows, right=("median", "fastest"))
    ratio = statistics.median(b / a for a, b in zip(times["dovetail"], times["onnxruntime"], strict=True))
    say(f"{ratio:.2f} times as fast as ONNX Runtime with {threads} threads, {ROUNDS} rounds in turns")
    say(f"compiled in {milliseconds(compiled)}; scores agree to {error:.0e} of the largest")
    if error > TOLERANCE:
        note("the scores differ by more than rounding explains")
    return 0 if error <= TOLERANCE else 1
