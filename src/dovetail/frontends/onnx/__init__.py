"""ONNX models: a file becomes checked plain data, and that a graph of operators."""
