"""Names of operators, to put one in the place of another."""

from __future__ import annotations

from onnx import defs

OPERATORS: tuple[str, ...] = tuple(sorted({schema.name for schema in defs.get_all_schemas()}))
