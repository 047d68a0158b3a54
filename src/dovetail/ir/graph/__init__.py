"""The graph language: named operators over typed tensors. ``graph`` has its grammar and classes."""
