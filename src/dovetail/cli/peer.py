"""One system in a process of its own, for ``dovetail bench MODEL --against``: it is told how often to run, and answers
with the seconds that took.

    python -m dovetail.cli.peer SYSTEM MODEL THREADS INPUTS.npz
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

Feeds = dict[str, npt.NDArray[np.generic]]
Call = Callable[[], object]


def _dovetail(path: str, threads: int, feeds: Feeds) -> Call:
    from dovetail.model.opened import open_model

    model = open_model(path, threads=threads)
    return lambda: model.run(dict(feeds))


def _onnxruntime(path: str, threads: int, feeds: Feeds) -> Call:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, feeds)


def _openvino(path: str, threads: int, feeds: Feeds) -> Call:
    import openvino

    core = openvino.Core()
    model = core.read_model(path)
    model.reshape({name: array.shape for name, array in feeds.items()})
    wanted = {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
    request = core.compile_model(model, "CPU", wanted).create_infer_request()
    return lambda: request.infer(feeds)


def _torch(path: str, threads: int, feeds: Feeds) -> Call:
    import torch

    from dovetail.frontends.onnx.file import read
    from dovetail.model.onnx_session import Session
    from dovetail.model.torch_graph import as_torch

    torch.set_num_threads(threads)
    session = Session(read(path), as_torch)
    return lambda: session.run(dict(feeds))


SYSTEMS: Mapping[str, Callable[[str, int, Feeds], Call]] = {
    "dovetail": _dovetail,
    "onnxruntime": _onnxruntime,
    "openvino": _openvino,
    "torch": _torch,
}


def main(system: str, path: str, threads: str, inputs: str) -> None:
    with np.load(inputs, allow_pickle=False) as kept:
        feeds = {name: kept[f"input{number}"] for number, name in enumerate(kept["names"].tolist())}
    call = SYSTEMS[system](path, int(threads), feeds)
    call()
    print("ready", flush=True)
    for line in sys.stdin:
        begun = time.perf_counter()
        for _ in range(int(line)):
            call()
        print(time.perf_counter() - begun, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
