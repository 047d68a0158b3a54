"""Compiled models in files: ``model.save("resnet.dovetail")``, and in another process ``load("resnet.dovetail")``.

Loading takes neither the model's own file nor the packages that read it, and maps the constants instead of copying
them. A file holds machine code: load what you trust.
"""

from __future__ import annotations

from pathlib import Path

from dovetail.base.limits import DEFAULT_MODEL_LIMITS, ModelLimits
from dovetail.model.compiled import CompiledModel
from dovetail.model.container import SUFFIX, read
from dovetail.runtime.cache import open_cache

__all__ = ["SUFFIX", "load"]


def load(path: str | Path, limits: ModelLimits = DEFAULT_MODEL_LIMITS) -> CompiledModel:
    """The model that ``CompiledModel.save`` wrote."""
    return CompiledModel(read(Path(path), limits), cache=open_cache())
