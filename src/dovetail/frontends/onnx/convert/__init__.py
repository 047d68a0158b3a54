"""What each ONNX operator is in the graph language: one function for each, in tables by (domain, name)."""
