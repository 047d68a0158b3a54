"""OpenVINO on the CPU: the file as it is, float32, latency, inputs and outputs shared without a copy."""

import numpy as np
import openvino as ov

from benchmarks.model_systems import ModelRun
from benchmarks.peers.openvino_cpu import VERSION as VERSION
from benchmarks.peers.openvino_cpu import hints
from benchmarks.zoo import Array, Model


def prepare(model: Model, threads: int) -> tuple[ModelRun, ...]:
    """One request, by ``infer`` and by ``start_async`` + ``wait``, whose overheads differ."""
    compiled = ov.Core().compile_model(str(model.onnx), "CPU", hints(threads))
    request = compiled.create_infer_request()
    feeds = model.inputs()
    for name, array in feeds.items():
        request.set_tensor(name, ov.Tensor(array, shared_memory=True))
    held = compiled, feeds  # shared with the request: they live as long as ``run``

    def start_and_wait() -> None:
        request.start_async()
        request.wait()

    def results() -> list[Array]:
        return [np.array(request.get_output_tensor(n).data) for n in range(len(held[0].outputs))]

    return (
        ModelRun("infer", lambda: request.infer(share_inputs=True, share_outputs=True), results),
        ModelRun("asynchronous", start_and_wait, results),
    )
