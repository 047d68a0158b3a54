"""Simulated accelerators against hand-written plans and other simulators: python -m benchmarks.accelerators"""
