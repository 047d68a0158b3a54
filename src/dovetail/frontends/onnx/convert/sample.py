"""Images sampled at places that are data: GridSample, AffineGrid, RoiAlign."""

from __future__ import annotations

from dovetail.base.dtypes import DTYPES
from dovetail.frontends.onnx.convert.attributes import integer, malformed, number, required, text, unsupported
from dovetail.frontends.onnx.convert.context import Context, Conversion, Operands, Results
from dovetail.frontends.onnx.convert.steps import cast
from dovetail.frontends.onnx.model import OnnxNode

_MODES = {"bilinear": "linear", "bicubic": "cubic"}
"""As they were called before opset 20."""


def grid_sample(context: Context, node: OnnxNode, operands: Operands) -> Results:
    x, places = required(node, operands, 2)
    own = context.dtype(x)
    wide = own if own.is_float else DTYPES["f32"]
    mode = text(node, "mode", "linear")
    found = context.node(
        "grid_sample",
        cast(context, x, wide),
        places,
        mode=_MODES.get(mode, mode),
        padding=text(node, "padding_mode", "zeros"),
        align_corners=integer(node, "align_corners", 0),
    )
    return (cast(context, found, own),)


def affine_grid(context: Context, node: OnnxNode, operands: Operands) -> Results:
    theta, size = required(node, operands, 2)
    sizes = context.ints(size)
    if len(sizes) not in (4, 5):
        raise malformed(node, f"a grid for an image of {len(sizes)} axes")
    corners = integer(node, "align_corners", 0)
    return (context.node("affine_grid", theta, size=sizes[2:], align_corners=corners),)


def roi_align(context: Context, node: OnnxNode, operands: Operands) -> Results:
    """How many samples a box takes must be stated; otherwise it follows from the box."""
    given = required(node, operands, 3)
    samples = integer(node, "sampling_ratio", 0)
    if samples < 1:
        raise unsupported(node, "how many samples it takes follows from its boxes", "sampling_ratio")
    default = "half_pixel" if context.opset >= 16 else "output_half_pixel"
    where = text(node, "coordinate_transformation_mode", default)
    return (
        context.node(
            "roi_align",
            *given,
            size=(integer(node, "output_height", 1), integer(node, "output_width", 1)),
            samples=samples,
            scale=number(node, "spatial_scale", 1.0),
            mode=text(node, "mode", "avg"),
            half_pixel=int(where == "half_pixel"),
        ),
    )


CONVERSIONS: dict[tuple[str, str], Conversion] = {
    ("", "AffineGrid"): affine_grid,
    ("", "GridSample"): grid_sample,
    ("", "RoiAlign"): roi_align,
}
