"""ONNX operators on the host: NumPy functions for what cannot be a program, or whose result depends on values."""
