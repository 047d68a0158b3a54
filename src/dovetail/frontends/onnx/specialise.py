"""An ONNX graph for the values at hand becomes stages: a graph of ours, then nodes on the host, then what is left.

    a = Relu(x)                             stage 1:  graph    v0 = relu(x0)
    n = NonZero(a)                                    host     n = NonZero(a)
    y = Gather(a, n)                                  rest     y = Gather(a, n): its type is known when n is there

A stage holds for all values of the same types, and for the guarded ones the same values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dovetail.base.limits import DEFAULT_MODEL_LIMITS, ModelLimits
from dovetail.frontends.onnx.entries import (
    HostValue,
)
from dovetail.frontends.onnx.inline import Names, Work
from dovetail.frontends.onnx.making import Making
from dovetail.frontends.onnx.model import FunctionKey, OnnxFunction
from dovetail.frontends.onnx.repeated import repeated
from dovetail.frontends.onnx.stage import Stage


def specialise(
    work: Sequence[Work],
    given: Mapping[str, HostValue],
    fixed: Mapping[str, HostValue],
    wanted: Sequence[str],
    functions: Mapping[FunctionKey, OnnxFunction],
    names: Names,
    limits: ModelLimits = DEFAULT_MODEL_LIMITS,
) -> Stage:
    """The first stage of ``work`` for the values ``given``; ``fixed`` are the same in every call.

    ``wanted`` are the values that must be there in the end.
    """
    making = Making(given, fixed, functions, names, limits, repeated)
    making.take_all(work)
    return making.stage(wanted)
