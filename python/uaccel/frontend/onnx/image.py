"""Converts Resize, grids of points for GridSample, TopK, and the suppression of overlapping boxes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from uaccel.errors import ModelError, need
from uaccel.frontend.checks import need_axis
from uaccel.frontend.onnx import functions
from uaccel.frontend.onnx.converter import Context, Expr, converts, real
from uaccel.frontend.onnx.graph import Node
from uaccel.model import Array
from uaccel.ops.detection import NonMaxSuppression, NonMaxSuppressionAttrs
from uaccel.ops.operator import constant, get
from uaccel.ops.reduce import TopK, TopKAttrs
from uaccel.tvm_api import relax

# Resize: by TVM's operator where that means the same, else axis by axis, with constant indices and weights.

CROP = "tf_crop_and_resize"
COORDINATES = ("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric", CROP)
OPERATOR_COORDINATES = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric")
METHODS = {"nearest": "nearest_neighbor", "linear": "linear"}


@dataclass(frozen=True)
class ResizeAxis:
    """Describes how an axis is resized. ``scale`` is what coordinates are computed with, which need not be the quotient
    of the extents. ``crop`` has the ends of the region of interest, as parts of the extent."""

    number: int
    extent: int
    size: int
    scale: float
    crop: tuple[float, float] = (0.0, 1.0)

    @property
    def plain(self) -> bool:
        return self.size == self.extent and self.scale == 1.0 and self.crop == (0.0, 1.0)


@converts("Resize")
def resize(context: Context, node: Node) -> Expr:
    data, info = context.operand(node)
    shape, mode = info.shape, node.attributes.get("mode", "nearest")
    coordinates = node.attributes.get("coordinate_transformation_mode", "half_pixel")
    need(mode in ("nearest", "linear", "cubic"), f"mode {mode} is not supported")
    fits = coordinates in COORDINATES
    need(fits, f"coordinate_transformation_mode {coordinates} is not supported; supported are {', '.join(COORDINATES)}")
    axes = [axis for axis in _axes(context, node, shape) if not axis.plain]
    if not axes:
        return data
    dtype = info.dtype
    if mode != "nearest" and not dtype.startswith("float"):  # real numbers, cut off at the end, or rounded if smoothed
        wide = _interpolated(context, node, relax.op.astype(data, "float32"), axes, mode, coordinates)
        wide = relax.op.floor(relax.op.add(wide, real(0.5, context, wide))) if _smooths(node, axes) else wide
        return relax.op.astype(wide, dtype)
    sizes = {axis.number: axis.size for axis in axes}
    wanted = [sizes.get(number, extent) for number, extent in enumerate(shape)]
    if _has_operator(node, mode, coordinates, wanted, axes):
        image = data if len(shape) == 4 else context.normal(relax.op.expand_dims(data, 2))
        resized = relax.op.image.resize2d(
            image,
            (1, *wanted[2:])[-2:],
            layout="NCHW",
            method=METHODS[mode],
            coordinate_transformation_mode=coordinates,
            rounding_method=node.attributes.get("nearest_mode", "round_prefer_floor"),
        )
        return resized if len(shape) == 4 else relax.op.squeeze(context.normal(resized), [2])
    return _interpolated(context, node, data, axes, mode, coordinates)


def _interpolated(
    context: Context, node: Node, data: Expr, axes: list[ResizeAxis], mode: str, coordinates: str
) -> Expr:
    for axis in axes:
        positions = _positions(axis, coordinates)
        data = _along(context, node, data, axis, mode, positions)
        if coordinates == CROP:
            data = _bordered(context, node, data, axis, positions)
    return data


def _bordered(context: Context, node: Node, data: Expr, axis: ResizeAxis, positions: Array) -> Expr:
    """Put ``extrapolation_value`` where an element lies outside the input."""
    outside = (positions < 0) | (positions > axis.extent - 1)
    if not outside.any():
        return data
    shape = [1] * len(context.normal(data).ty.shape)
    shape[axis.number] = -1
    value = real(float(node.attributes.get("extrapolation_value", 0.0)), context, data)
    return context.normal(relax.op.where(constant(outside.reshape(shape)), value, data))


def _axes(context: Context, node: Node, shape: tuple[int, ...]) -> list[ResizeAxis]:
    """The axes of the node with their new sizes, by scales or by sizes."""
    given = node.attributes.get("axes", tuple(range(len(shape))))
    numbers = [need_axis(int(axis), len(shape)) for axis in given]
    scales, sizes = (_numbers(context, node.optional_input(position)) for position in (2, 3))
    if scales:
        need(len(scales) == len(numbers), f"{len(scales)} scales for {len(numbers)} axes")
        found = [
            ResizeAxis(n, shape[n], math.floor(np.float32(shape[n]) * np.float32(scale)), scale)
            for n, scale in zip(numbers, scales, strict=True)
        ]
    else:
        need(len(sizes) == len(numbers), f"{len(sizes)} sizes for {len(numbers)} axes")
        found = _by_sizes(node, shape, numbers, [int(size) for size in sizes])
    context.budget.bytes(64 * sum(max(0, axis.size) for axis in found))
    need(all(axis.size > 0 for axis in found), "an axis would have no elements; nothing to compute")
    if node.attributes.get("coordinate_transformation_mode") != CROP:
        return found
    ends = _numbers(context, node.required_input(1))
    need(len(ends) == 2 * len(found), f"{len(ends)} ends of the region of interest for {len(found)} axes")
    pairs = zip(ends[: len(found)], ends[len(found) :], strict=True)
    return [replace(axis, crop=crop) for axis, crop in zip(found, pairs, strict=True)]


def _by_sizes(node: Node, shape: tuple[int, ...], numbers: list[int], sizes: list[int]) -> list[ResizeAxis]:
    policy = node.attributes.get("keep_aspect_ratio_policy", "stretch")
    pairs = list(zip(numbers, sizes, strict=True))
    if policy == "stretch":
        return [ResizeAxis(number, shape[number], size, size / shape[number]) for number, size in pairs]
    pick = min if policy == "not_larger" else max
    scale = pick(size / shape[number] for number, size in pairs)
    return [ResizeAxis(n, shape[n], math.floor(shape[n] * scale + 0.5), scale) for n, _ in pairs]


def _numbers(context: Context, name: str) -> list[float]:
    return [] if not name else [float(value) for value in context.need_known(name, "size").reshape(-1)]


def _has_operator(node: Node, mode: str, coordinates: str, wanted: list[int], axes: list[ResizeAxis]) -> bool:
    """Whether TVM's operator, which is given only sizes, means the same.

    A line is an image of one row to it, whose corners it cannot align."""
    exact = all(axis.scale * axis.extent == axis.size and axis.size > 1 for axis in axes)
    ranks = (3, 4) if mode == "linear" else (4,)
    spatial = len(wanted) in ranks and {axis.number for axis in axes} <= {2, 3}
    known = coordinates in OPERATOR_COORDINATES
    if coordinates == "align_corners":
        known = len(wanted) == 4 and min(wanted[2:]) > 1
    if not (spatial and exact and mode in METHODS and known) or _smooths(node, axes):
        return False
    return mode != "nearest" or all(_picks_alike(node, axis, coordinates) for axis in axes)


def _picks_alike(node: Node, axis: ResizeAxis, coordinates: str) -> bool:
    """Whether TVM's operator picks the same elements: its coordinates have other last bits, which decide ties."""
    quotient = np.float32(axis.extent) / np.float32(axis.size)
    out, half, near = np.arange(axis.size, dtype=np.float32), np.float32(0.5), np.float32(1e-5)
    if coordinates == "align_corners":
        places = np.float32(axis.extent - 1) / np.float32(axis.size - 1) * out
    else:
        places = quotient * out if coordinates == "asymmetric" else (out + half) * quotient - half
    nudged = {"floor": near, "ceil": -near}.get(node.attributes.get("nearest_mode", ""), np.float32(0))
    return bool((_picked(node, axis, places + nudged) == _picked(node, axis, _positions(axis, coordinates))).all())


def _smooths(node: Node, axes: list[ResizeAxis]) -> bool:
    return bool(node.attributes.get("antialias", 0)) and any(axis.scale < 1 for axis in axes)


def _positions(axis: ResizeAxis, coordinates: str) -> Array:
    """The coordinate in the input of each output element, by ONNX's formula for each mode.

    It is computed in float32 and in ONNX Runtime's order: which element is nearest hangs on the last bit."""
    out, scale, extent = np.arange(axis.size, dtype=np.float32), np.float32(axis.scale), np.float32(axis.extent)
    one, half = np.float32(1), np.float32(0.5)
    if coordinates == CROP:
        first, last = map(np.float32, axis.crop)
        if axis.size <= 1:
            return (half * (first + last) * (extent - one) + out).astype(np.float32)
        return first * (extent - one) + (out * (last - first) * (extent - one)) / np.float32(axis.size - 1)
    if coordinates == "asymmetric":
        return out / scale
    if coordinates == "align_corners":
        length = extent * scale  # need not be whole: ONNX's text and its tests have it so, and ONNX Runtime rounds it
        length = np.float32(axis.size) if abs(length - axis.size) < 1e-5 * length else length  # a scale's last bits
        return out * (extent - one) / (length - one) if length > 1 else np.zeros_like(out)
    if coordinates == "pytorch_half_pixel" and axis.size <= 1:
        return np.zeros_like(out)
    if coordinates == "half_pixel_symmetric":  # the runtime's half is a double here
        offset = extent / 2 * (one - np.float32(axis.size) / (extent * scale))
        return (offset + (out + 0.5).astype(np.float64) / float(scale) - 0.5).astype(np.float32)
    return (out + half) / scale - half


def _along(context: Context, node: Node, data: Expr, axis: ResizeAxis, mode: str, positions: Array) -> Expr:
    """Resize one axis: pick the nearest elements, or add up the taps."""
    if mode == "nearest":
        picked = constant(_picked(node, axis, positions))
        return context.normal(relax.op.take(data, picked, axis.number, mode="clip"))
    taps = _taps(node, axis, mode, positions)
    rank, dtype = len(context.normal(data).ty.shape), str(context.normal(data).ty.dtype)
    shape = [1] * rank
    shape[axis.number] = axis.size
    total = None
    for indices, weights in taps:
        part = relax.op.take(data, constant(indices), axis.number, mode="clip")
        part = relax.op.multiply(part, constant(weights.astype(dtype).reshape(shape)))
        total = part if total is None else relax.op.add(total, part)
    return context.normal(total)


def _picked(node: Node, axis: ResizeAxis, positions: Array) -> Array:
    return np.clip(_nearest(node, positions), 0, axis.extent - 1).astype(np.int64)


def _nearest(node: Node, positions: Array) -> Array:
    mode = node.attributes.get("nearest_mode", "round_prefer_floor")
    if mode == "round_prefer_floor":
        return np.ceil(positions - 0.5)
    if mode == "round_prefer_ceil":
        return np.floor(positions + 0.5)
    if mode in ("floor", "ceil"):
        return np.floor(positions) if mode == "floor" else np.ceil(positions)
    raise ModelError(f"nearest_mode {mode} is not known")


def _taps(node: Node, axis: ResizeAxis, mode: str, positions: Array) -> list[tuple[Array, Array]]:
    """Gives for each tap an index and a weight for every output element.

    The kernel reaches ``radius`` to both sides: 1 for linear, 2 for cubic, stretched by 1 / scale where it smooths. So
    at most 2 * ceil(radius) taps lie in (p - radius, p + radius], and others weigh 0. Weights are normalised to a sum
    of 1. Indices outside are clamped, which repeats the border.
    """
    stretch = 1.0 / min(axis.scale, 1.0) if _smooths(node, [axis]) else 1.0
    radius = (1.0 if mode == "linear" else 2.0) * stretch
    first = np.floor(positions - radius).astype(np.int64) + 1
    count = 2 * math.ceil(radius)
    raw = [first + number for number in range(count)]
    kernel = _linear if mode == "linear" else _cubic(float(node.attributes.get("cubic_coeff_a", -0.75)))
    weights = np.stack([kernel(np.abs(positions - index) / stretch) for index in raw])
    if node.attributes.get("exclude_outside", 0):
        weights[(np.stack(raw) < 0) | (np.stack(raw) >= axis.extent)] = 0
    weights /= weights.sum(axis=0)
    pairs = zip(raw, weights, strict=True)
    return [(np.clip(index, 0, axis.extent - 1), weight) for index, weight in pairs if weight.any()]


def _linear(distance: Array) -> Array:
    return np.maximum(0.0, 1.0 - distance)


def _cubic(a: float) -> Callable[[Array], Array]:
    def kernel(distance: Array) -> Array:
        near = ((a + 2) * distance - (a + 3)) * distance**2 + 1
        far = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
        return np.where(distance <= 1, near, np.where(distance < 2, far, 0.0))

    return kernel


# GridSample, and AffineGrid, which makes the points from which it picks.


@converts("GridSample")
def grid_sample(context: Context, node: Node) -> Expr:
    """Samples in the type of the image: of integers cut off, and whatever type the points have."""
    name = node.required_input(0)
    dtype, points = context.info(name).dtype, context.info(node.required_input(1)).dtype
    kind = points if not dtype.startswith("float") else dtype
    operands = [
        context.expr(given) if context.info(given).dtype == kind else relax.op.astype(context.expr(given), kind)
        for given in node.inputs
    ]
    inner = replace(node, inputs=tuple(f"(as {kind}) {given}" for given in node.inputs), outputs=("(sampled)",))
    context.exprs |= {given: context.normal(operand) for given, operand in zip(inner.inputs, operands, strict=True)}
    (result,) = functions.convert(context, inner)
    return result if kind == dtype else relax.op.astype(result, dtype)


@converts("AffineGrid")
def affine_grid(context: Context, node: Node) -> Expr:
    """Multiply a constant grid of all points, whose coordinates begin with the last axis, by the affine maps."""
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
    """Coordinates of pixels: their middles if their edges lie at -1 and 1, or with the outermost middles there."""
    if corners:
        return np.linspace(-1.0, 1.0, extent)
    return (2 * np.arange(extent) + 1) / extent - 1


# TopK, and NonMaxSuppression with room for as many boxes as there can be.

NO_MORE = "how many boxes it keeps depends on data; make it an output, and go on in the application"


@converts("TopK")
def top_k(context: Context, node: Node) -> list[Expr]:
    """The largest or smallest elements, sorted also where the file does not ask for it."""
    name = node.required_input(0)
    rank = len(context.info(name).shape)
    axis, largest = (node.attributes.get(key, default) for key, default in (("axis", -1), ("largest", 1)))
    need(-rank <= axis < rank, f"axis {axis} is none of its input's {rank}")
    count = int(context.need_number(node.required_input(1), "count"))
    attrs = TopKAttrs(axis % rank, count, int(largest != 0), "int64")
    whole = context.block.emit(get(TopK)(context.expr(name), attrs=attrs), node.layer_name)
    return [context.normal(relax.TupleGetItem(whole, number)) for number in range(2)]


@converts("NonMaxSuppression")
def non_max_suppression(context: Context, node: Node) -> Expr:
    """Suppress overlapping boxes. The last rows may be fillers, so the result must be an output of the model."""
    made = node.outputs[0]
    need(made in context.graph.outputs, f'"{made}" is no output of the model; {NO_MORE}')
    names = [node.required_input(place) for place in range(2)]
    most, overlap, least = (
        context.need_number(name, role) if (name := node.optional_input(place)) else None
        for place, role in ((2, "limit"), (3, "overlap"), (4, "least score"))
    )
    need(most is not None and most > 0, "it keeps no box of a class; give it max_output_boxes_per_class")
    scores, declared = context.info(names[1]), context.graph.inferred.get(made)
    need(len(scores.shape) == 3, f"its scores are {scores}, wanted [batch, classes, boxes]")
    batch, classes, count = scores.shape
    attrs = NonMaxSuppressionAttrs(
        rows=batch * classes * min(int(most or 0), count) if declared is None else declared.shape[0],
        most=int(most or 0),
        overlap=float(overlap or 0.0),
        bounded=int(least is not None),
        least=float(least or 0.0),
        centred=int(node.attributes.get("center_point_box", 0)),
    )
    return get(NonMaxSuppression)(*map(context.expr, names), attrs=attrs)
