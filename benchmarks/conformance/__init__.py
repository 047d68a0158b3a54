"""The conformance cases that come with the onnx package: read, run in processes of their own, and compared."""
