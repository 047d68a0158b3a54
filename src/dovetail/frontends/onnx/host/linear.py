"""Linear algebra beyond sums of products."""

from __future__ import annotations

import numpy as np

from dovetail.frontends.onnx.host.call import Call, HostFunction, Results


def det(call: Call) -> Results:
    x = call.array(0)
    return (np.asarray(np.linalg.det(x.astype(np.float64)), x.dtype),)


HOST: dict[tuple[str, str], HostFunction] = {("", "Det"): det}
