"""Converts products with constants that are small integers and have a scale for each block, as torchao writes them."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from uaccel.errors import need
from uaccel.frontend.converters import StoredBlocks
from uaccel.frontend.torch.converter import Context, Expr, arguments, converts
from uaccel.frontend.torch.program import name_of
from uaccel.ops.matmul import FLOAT
from uaccel.ops.operator import constant

GROUPED: Final = "dequantize_per_channel_group.default"
AFFINE: Final = "dequantize_affine.default"
MIDDLE: Final = {"int8": 0, "uint8": 128}  # What the integers are stored less of.
NIBBLE: Final = (-8, 7)


def size_of(node: Any) -> int:
    """How many neighbours in a row of a dequantised matrix share a scale; 0 where scales lie in another way."""
    operator = name_of(node.target)
    if operator not in (GROUPED, AFFINE) or len(node.meta["val"].shape) != 2:
        return 0
    given, shape = arguments(node), tuple(node.meta["val"].shape)
    if operator == GROUPED:
        return int(given["group_size"])
    rows, size = (int(extent) for extent in given["block_size"])
    cut = size not in (-1, shape[1]) and (size > 1 or shape[0] > 1)
    return size if rows == 1 and cut else 0


def dequantized(context: Context, node: Any, size: int) -> Expr:
    """The real numbers of a constant. Products with them take the integers instead."""
    given = arguments(node)
    stored = context.array(given["input"])
    scale = context.array(given["scale"] if "scale" in given else given["scales"])
    points = given["zero_point"] if "zero_point" in given else given["zero_points"]
    dtype, (units, depth) = str(stored.dtype), stored.shape
    need(dtype in MIDDLE, f"blocks of {dtype} are not supported, wanted {' or '.join(MIDDLE)}")
    need(size > 0 and depth % size == 0, f"rows of {depth} cannot be cut into blocks of {size}")
    blocks = (units, depth // size)
    zeros = np.zeros(blocks) if points is None else context.array(points)
    overflows = name_of(node.target) == GROUPED and str(zeros.dtype) in MIDDLE
    need(not overflows, f"its zero points are {zeros.dtype}, whose differences overflow; give them as int32")
    point = zeros.astype(np.float64)
    counts = f"it has {scale.size} scales and {point.size} zero points for {units * blocks[1]} blocks"
    need(scale.size == point.size == units * blocks[1], counts)
    fits = scale.dtype == np.float32 and bool(np.all(np.isfinite(scale) & (scale > 0)))
    need(fits, f"a scale is not a positive number of {FLOAT}")
    point = point.reshape(blocks) - MIDDLE[dtype]
    whole = np.array_equal(point, np.rint(point)) and bool(np.all((point >= -128) & (point <= 127)))
    need(whole, f"a zero point is no integer of {dtype}")
    centred = np.asarray(stored.astype(np.int16) - MIDDLE[dtype], np.int8)
    bits = 4 if NIBBLE[0] <= centred.min() and centred.max() <= NIBBLE[1] else 8
    kept = StoredBlocks(centred, scale.reshape(blocks), point.astype(np.int8), 1, size, bits)
    context.blocks[node] = kept
    return constant(kept.value)


class Product(NamedTuple):
    """Has the nodes of a product: the left side, the matrix with a row for each result, and the bias if any."""

    left: Any
    matrix: Any
    bias: Any


def _turned(node: Any) -> Any | None:
    """The matrix whose rows are the node's columns; None for a node that turns no matrix."""
    operator = name_of(node.target)
    if operator == "permute.default":
        turns = [axis % 2 for axis in node.args[1]] == [1, 0]
    elif operator == "transpose.int":
        turns = node.args[1] % 2 != node.args[2] % 2
    else:
        turns = operator == "t.default"
    return node.args[0] if turns else None


def _product(node: Any) -> Product:
    given = arguments(node)
    if "weight" in given:
        return Product(given["input"], given["weight"], given["bias"])
    matrix = _turned(given["mat2"] if "mat2" in given else given["other"])
    return Product(given["mat1"], matrix, given["self"]) if "mat1" in given else Product(given["self"], matrix, None)


def _takes(node: Any) -> bool:
    """Whether the matrix has blocks, and the product is added to a bias of one number for each column at most."""
    given, product = arguments(node), _product(node)
    plain = given.get("beta", 1) == given.get("alpha", 1) == 1
    row = product.bias is None or len(product.bias.meta["val"].shape) == 1
    blocks = product.matrix is not None and size_of(product.matrix) > 0
    return plain and row and blocks


@converts("aten.linear.default", "aten.matmul.default", "aten.mm.default", "aten.addmm.default", when=_takes)
def multiply(context: Context, node: Any) -> Expr:
    product = _product(node)
    kept, shape = context.blocks.get(product.matrix), tuple(product.left.meta["val"].shape)
    if kept is None:  # a scale or a type was refused
        return context.block.stand_in(tuple(node.meta["val"].shape), FLOAT)
    bias = None if product.bias is None else context.expr(product.bias)
    return kept.product(context.expr(product.left), shape, bias)
