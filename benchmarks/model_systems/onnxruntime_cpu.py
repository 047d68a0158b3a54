"""ONNX Runtime on the CPU: the file as it is, all optimisations, inputs and outputs bound without a copy."""

import onnxruntime as ort

from benchmarks.model_systems import ModelRun
from benchmarks.peers.onnxruntime_cpu import VERSION as VERSION
from benchmarks.peers.onnxruntime_cpu import options
from benchmarks.zoo import Array, Model


def prepare(model: Model, threads: int) -> tuple[ModelRun, ...]:
    """One session, run with bound inputs."""
    session = ort.InferenceSession(str(model.onnx), options(threads), ["CPUExecutionProvider"])
    binding = session.io_binding()
    feeds = {name: ort.OrtValue.ortvalue_from_numpy(array) for name, array in model.inputs().items()}
    for name, value in feeds.items():
        binding.bind_ortvalue_input(name, value)
    for output in session.get_outputs():
        binding.bind_output(output.name)

    def results() -> list[Array]:
        return [value.numpy() for value in binding.get_outputs()]

    return (ModelRun("bound", lambda: session.run_with_iobinding(binding), results),)
