"""All that a compiled model is: what runs use and what files hold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dovetail.model.report import ModelReport
from dovetail.runtime.model_image import Image

Array = npt.NDArray[np.generic]


@dataclass(frozen=True, slots=True, eq=False)
class Finished:
    """``image`` numbers the constants; ``objects`` define the entries of its steps."""

    image: Image
    objects: tuple[bytes, ...]
    constants: tuple[Array, ...]
    report: ModelReport
    beside: tuple[str, ...] = ()
    """Symbols that the code may call in files beside a target file: such a model cannot leave its process."""
