"""Nest -> LLVM text -> object code."""
