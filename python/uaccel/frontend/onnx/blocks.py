"""Converts matrix products with weights that are small integers and have a scale for each block, as ``MatMulNBits``."""

from __future__ import annotations

import math

import numpy as np

from uaccel.errors import need
from uaccel.frontend.checks import need_axis
from uaccel.frontend.converters import StoredBlocks
from uaccel.frontend.onnx import functions
from uaccel.frontend.onnx.converter import Context, Expr, converts
from uaccel.frontend.onnx.graph import FOUR_BITS, MICROSOFT, Node
from uaccel.model import Array
from uaccel.ops.matmul import FLOAT

WIDTHS = (2, 4, 8)


@converts(f"{MICROSOFT}.MatMulNBits")
def matmul_n_bits(context: Context, node: Node) -> Expr:
    """Converts the product whatever ``accuracy_level`` says: it allows less precision, and asks for none."""
    names, attributes = [node.optional_input(place) for place in range(6)], node.attributes
    left, packed, scale, point, order, bias = names
    units, depth, size, bits = (attributes.get(name, 4) for name in ("N", "K", "block_size", "bits"))
    need(bits in WIDTHS, f"its weights have {bits} bits, wanted {', '.join(map(str, WIDTHS))}")
    need(min(units, depth, size) > 0, f"N {units}, K {depth} and block_size {size} must be positive")
    need(not order, "it has an order of groups (g_idx), which is not supported; quantise the model without one")
    need(context.info(left).dtype == FLOAT, f'"{left}" is {context.info(left).dtype}, wanted {FLOAT}')
    count = -(-depth // size)
    integers = _integers(context, packed, (units, count, size), bits, "weights").reshape(units, -1)[:, :depth]
    points = np.zeros((units, count), np.int8)
    if point:
        points = _integers(context, point, (units, count), bits, "zero point")
    scales = context.need_known(scale, "scale")
    fits = scales.dtype == np.float32 and scales.size == units * count
    need(fits, f'scale "{scale}" is {scales.dtype} {list(scales.shape)}, wanted {FLOAT} [{units},{count}]')
    blocks = StoredBlocks(integers, scales.reshape(units, count), points, 1, size, bits)
    return _called(context, left, blocks, bias)


def _integers(context: Context, name: str, shape: tuple[int, ...], bits: int, role: str) -> Array:
    """Takes packed integers apart, the first in the lowest bits, rows in bytes of their own; the middle becomes 0."""
    packed, each = context.need_known(name, role), 8 // bits
    wanted = (*shape[:-1], -(-shape[-1] // each))
    fits = packed.dtype == np.uint8 and packed.size == math.prod(wanted)
    need(fits, f'{role} "{name}" is {packed.dtype} {list(packed.shape)}, wanted uint8 {list(wanted)}')
    parts = packed.reshape(*wanted, 1) >> (np.arange(each, dtype=np.uint8) * np.uint8(bits)) & np.uint8((1 << bits) - 1)
    apart = parts.reshape(*wanted[:-1], -1)[..., : shape[-1]]
    return np.asarray(apart.astype(np.int16) - (1 << (bits - 1)), np.int8)


def _called(context: Context, name: str, blocks: StoredBlocks, bias: str) -> Expr:
    """Multiplies the rows of a tensor by the rows of the blocks."""
    units, depth = blocks.stored.shape
    shape, terms = context.info(name).shape, None
    need(shape[-1:] == (depth,), f'"{name}" has rows of {shape[-1] if shape else 0}, wanted {depth}')
    if bias:
        given = context.info(bias)
        fits = given.dtype == FLOAT and given.shape == (units,)
        need(fits, f'bias "{bias}" is {given}, wanted {FLOAT} [{units}]')
        terms = context.expr(bias)
    return blocks.product(context.expr(name), shape, terms)


def blocks_of(
    stored: Array, dtype: str, scale: Array, points: Array | None, axis: int, size: int
) -> StoredBlocks | None:
    """A matrix of small integers with float32 scales as ``MatMul`` and ``Gemm`` find it; None for other constants."""
    bits = 4 if dtype in FOUR_BITS else 8
    if stored.ndim != 2 or scale.dtype != np.float32 or dtype not in (*FOUR_BITS, "int8", "uint8"):
        return None
    middle = 1 << (bits - 1) if dtype.startswith("u") else 0
    found = np.zeros(scale.shape, np.int16) if points is None else points.astype(np.int16)
    integers, zeros = (np.asarray(part.astype(np.int16) - middle, np.int8) for part in (stored, found))
    return StoredBlocks(integers, scale, zeros, axis, size, bits)


def product(context: Context, node: Node, *, turned: bool = False, bias: str = "") -> Expr | None:
    """A product with blocks along the right side's rows, or columns where it is ``turned``; None for other products."""
    left, right = (node.required_input(place) for place in (0, 1))
    blocks, info = context.blocks.get(right), context.info(left)
    along = int(turned)
    if blocks is None or blocks.axis != need_axis(along, 2) or info.dtype != FLOAT or len(info.shape) < 2:
        return None
    if bias and context.info(bias).shape != (blocks.stored.shape[1 - along],):
        return None
    if not turned:
        stored, scale, point = (np.ascontiguousarray(p.T) for p in (blocks.stored, blocks.scale, blocks.zero_point))
        blocks = StoredBlocks(stored, scale, point, 1, blocks.size, blocks.bits)
    return _called(context, left, blocks, bias)


@converts("MatMul")
def matmul(context: Context, node: Node) -> Expr | list[Expr]:
    made = product(context, node)
    return functions.convert(context, node) if made is None else made
