"""Grids of points that an affine map makes, from which GridSample picks."""

from __future__ import annotations

import math

import numpy as np

from uaccel.errors import need
from uaccel.frontend.onnx.convert import Context, Expr, converts
from uaccel.frontend.onnx.graph import Node
from uaccel.model import Array
from uaccel.ops.base import constant
from uaccel.tvm_api import relax


@converts("AffineGrid")
def affine_grid(context: Context, node: Node) -> Expr:
    """A product of the constant grid of all points, the last axis first in each, with the maps."""
    name = node.required_input(0)
    info = context.info(name)
    size = [int(extent) for extent in context.need_known(node.required_input(1), "size").reshape(-1)]
    extents, rank = size[2:], len(size) - 2
    need(rank in (2, 3), f"its size has {len(size)} extents, wanted 4 or 5")
    need(info.shape == (size[0], rank, rank + 1), f"its maps are {info}, wanted [{size[0]},{rank},{rank + 1}]")
    context.budget.array((math.prod(extents), rank + 1), 8)
    lines = [_line(extent, bool(node.attributes.get("align_corners", 0))) for extent in extents]
    places = np.meshgrid(*lines, indexing="ij")[::-1]
    points = np.stack([*places, np.ones(extents)], -1).reshape(1, -1, rank + 1).astype(info.dtype)
    made = relax.op.matmul(constant(points), relax.op.permute_dims(context.expr(name), [0, 2, 1]))
    return relax.op.reshape(made, (size[0], *extents, rank))


def _line(extent: int, corners: bool) -> Array:
    """Middles of pixels from -1 to 1; or the first and the last lie there."""
    if corners:
        return np.linspace(-1.0, 1.0, extent)
    return (2 * np.arange(extent) + 1) / extent - 1
